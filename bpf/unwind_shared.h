/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_UNWIND_SHARED_H
#define STACKD_BPF_UNWIND_SHARED_H

/*
 * The tables by which BPF programs walk user stacks: rows compiled from call frame information
 * (CFI), where the rows are, and what each process has mapped. The daemon writes the tables through
 * shared memory and the BPF programs read them. All integers have explicit widths, and there is no
 * padding. A word has 8 bytes.
 */

#include <linux/types.h>

/* How to step from a frame to the caller's. CFA is the canonical frame address of DWARF. */
enum unwind_kind {
	UNWIND_INVALID, /* not known: there is no CFI, or a rule that the walk cannot follow */
	UNWIND_END,	/* the thread's first function, which has no caller */
	UNWIND_SP,	/* CFA = sp + 8 * cfa */
	UNWIND_BP,	/* CFA = bp + 8 * cfa */
	/* a PLT entry, which has 16 bytes: CFA = sp + 8; from its byte `cfa` on, CFA = sp + 16 */
	UNWIND_PLT,
	UNWIND_SIGNAL, /* the frame that the kernel made to call a signal handler */
	/*
	 * a frame that struct unwind_frame cannot express: a struct unwind_rule describes it, `cfa`
	 * words behind the first struct unwind_frame of the file's table
	 */
	UNWIND_RULE,
	UNWIND_FRAME,  /* code known to keep frame pointers */
	UNWIND_SWITCH, /* as UNWIND_BP, but the caller is on another stack, at any address */
	/*
	 * code without CFI, in a part of the file where such code keeps frame pointers: each step
	 * has to be proved
	 */
	UNWIND_FRAME_PROVED,
	UNWIND_KINDS, /* number of the values above */
};

enum { UNWIND_BX_LOST = 255 };

/*
 * Says where on the stack a frame keeps its caller's registers: pc at CFA - 8, bp at CFA + 8 * bp
 * and bx at CFA - 8 * bx. If bp or bx is 0 here, the register has not changed. bx is needed only
 * for ld.so's lazy resolver, which finds its CFA by it. A file has about a hundred different
 * frames, and its rows refer to them by number.
 */
struct unwind_frame {
	__s32 cfa;
	__s16 bp;
	__u8 kind;
	__u8 bx;
};

/*
 * A row: the code from `pc` up to the `pc` of the next row has the frame with this number. `pc` is
 * an offset in the page, in bytes.
 */
struct unwind_row {
	__u16 pc;
	__u16 frame;
};

enum unwind_cfa_kind {
	UNWIND_CFA_REGISTER, /* CFA = register + cfa_offset */
	UNWIND_CFA_MEMORY,   /* CFA = the word at register + cfa_offset, plus cfa_add */
};

enum unwind_saved_kind {
	UNWIND_SAVED_NOT, /* the register is not saved: the callee has not changed it */
	UNWIND_SAVED_CFA, /* saved at CFA + offset */
	UNWIND_SAVED_BP,  /* saved at bp + offset */
	UNWIND_SAVED_IN,  /* kept in the register with the number `offset` */
	UNWIND_SAVED_LOST,
	UNWIND_SAVED_SP, /* saved at sp + offset */
};

/* A frame that struct unwind_frame cannot express. Registers are given by their DWARF numbers. */
struct unwind_rule {
	__u8 cfa_kind;
	__u8 cfa_register;
	__u8 bp_kind;
	__u8 pc_kind;
	__s32 cfa_offset;
	__s32 bp_offset;
	__s16 cfa_add;
	__s16 pc_offset;
};

/*
 * A file's code is divided into parts of 32 KiB. A part's unwind rows are loaded only when they are
 * needed, as stacks go through little of a large program. The memory of a loaded part has an entry
 * for each page of 2 KiB, then the rows. Each entry and each row has half a word. The lower bits of
 * an entry are the number of the page's rows, the bits above are the index of the page's first row,
 * which begins where the page begins. The entry is 0 for pages behind the end of the code.
 */
enum {
	UNWIND_PAGE_SHIFT = 11,
	UNWIND_PART_SHIFT = 15,
	UNWIND_PART_PAGES = 1 << (UNWIND_PART_SHIFT - UNWIND_PAGE_SHIFT),
	UNWIND_ROWS_BITS = 12, /* number of bits for the number of a page's rows (at most 2048) */
	UNWIND_ROW_STEPS = 12, /* steps that a binary search among the rows of a page needs */
};

struct unwind_part {
	__u32 at;   /* index of the part's memory, in half words; 0: not loaded */
	__u32 used; /* 1: a stack walk has used the part; the daemon clears it */
};

enum unwind_state {
	UNWIND_ABSENT, /* the rows are not loaded yet, or there was no room for them */
	UNWIND_LOADED,
	UNWIND_NO_ROWS, /* the file has no CFI */
};

/* The unwind rows of one file. When the daemon loads the rows, it writes `state` last. */
struct unwind_table {
	__u32 state;
	__u32 used; /* set to 1 by walks, cleared by the daemon */
	/* index of the first struct unwind_part, in words; the frames follow the last one */
	__u32 parts;
	__u32 n_parts;
	__u32 n_frames;
	__u32 n_words; /* number of words of the frames and rules together */
};

/* One executable mapping of a process. The pc of a row is an address minus bias. */
struct unwind_segment {
	__u64 start;
	__u64 end;
	__u64 bias;
	__u64 state; /* hash that unwind_state_of() returns for the mapped file; 0: not known */
	__u32 table;
	__u32 is_generated; /* 1: code made at run time, walked only by frame pointers */
};

/*
 * Returns a hash of a file's identity and of the address at which its first byte is mapped. Never
 * 0.
 */
static inline __u64 unwind_state_of(__u64 inode, __u64 size, __s64 mtime_ns, __u64 base)
{
	__u64 h = inode * 0x9e3779b97f4a7c15ULL + size;

	h = (h ^ (h >> 29)) * 0x9e3779b97f4a7c15ULL + (__u64)mtime_ns;
	h = (h ^ (h >> 29)) * 0x9e3779b97f4a7c15ULL + base;
	return (h ^ (h >> 32)) | 1;
}

/*
 * The mappings of a process since its last exec: n segments, sorted, from index `first` on. The
 * segment in front of them has a generation number as its `bias`: if it differs from `generation`,
 * the segments have been replaced. An entry that was read while it was being written has a wrong
 * `check`.
 */
struct unwind_process {
	/* time at which the process started; 0: known only in ticks, see `ticks` */
	__u64 leader_boot_ns;
	__u64 ticks;
	__u64 generation;
	__u32 tgid;
	/*
	 * Number of the process's execs (self_exec_id). UNWIND_ANY_EXEC: it is not known, but no
	 * exec was seen since the daemon read the process's mappings.
	 */
	__u32 exec_gen;
	__u32 first;
	__u32 n;
	__u64 check; /* checksum of the members above, by unwind_check() */
	/*
	 * The lower half has a bit for each segment that a walk found to be still mapped (see
	 * unwind_seen_bit()); the upper half has the sequence number of the process's mappings at
	 * that time. Not part of `check`, as walks write it.
	 */
	__u64 seen;
};

static inline __u64 unwind_check(const struct unwind_process *p)
{
	__u64 h = p->leader_boot_ns * 0x9e3779b97f4a7c15ULL + p->ticks;

	h = (h ^ (h >> 29)) * 0x9e3779b97f4a7c15ULL + p->generation;
	h = (h ^ (h >> 29)) * 0x9e3779b97f4a7c15ULL + (((__u64)p->tgid << 32) | p->exec_gen);
	h = (h ^ (h >> 29)) * 0x9e3779b97f4a7c15ULL + (((__u64)p->first << 32) | p->n);
	return h ^ (h >> 32);
}

/*
 * Identifies mapped code as the kernel knows it: a file, its size and time of change, and the
 * mapping's offset in the file. For the vdso only the size is set; for code made at run time all
 * members are 0.
 */
struct unwind_code_key {
	__u64 inode;
	__u64 size;
	__s64 mtime_ns;
	__u64 offset; /* offset of the mapping in the file, bytes */
	__u32 dev;    /* device of the super block, which is not always what stat() returns */
	__u32 generation;
};

/* Says which table describes mapped code. */
struct unwind_code {
	__u64 from_base; /* address that the table's rows use for the mapping's first byte */
	__u32 table;
	__u32 is_generated;
	__u64 check; /* checksum of the key and the members above, by unwind_code_check() */
};

/*
 * Returns a hash of key and code. If the kernel reuses the entry for another key while a program
 * reads the entry, the program notices it by this hash.
 */
static inline __u64 unwind_code_check(const struct unwind_code_key *key,
				      const struct unwind_code *code)
{
	__u64 h = key->inode * 0x9e3779b97f4a7c15ULL + key->offset;

	h = (h ^ (h >> 29)) * 0x9e3779b97f4a7c15ULL + (__u64)key->mtime_ns;
	h = (h ^ (h >> 29)) * 0x9e3779b97f4a7c15ULL + (((__u64)key->dev << 32) | key->generation);
	h = (h ^ (h >> 29)) * 0x9e3779b97f4a7c15ULL + code->from_base;
	h = (h ^ (h >> 29)) * 0x9e3779b97f4a7c15ULL +
	    (((__u64)code->table << 32) | code->is_generated);
	return h ^ (h >> 32);
}

/* A mapping that a walk found and that the daemon has no segment for. */
struct unwind_mapping_found {
	__u64 start;
	__u64 end;
	struct unwind_code_key key;
};

enum { UNWIND_FOUND_MAX = 4 };

/* How a walk ended, and how far its frames can be trusted. */
enum unwind_flag {
	UNWIND_IS_WHOLE = 1,	       /* the walk reached the thread's first function */
	UNWIND_IS_TRUNCATED = 2,       /* the stack has more frames than fit */
	UNWIND_IS_NO_TABLE = 4,	       /* the walk ended in a file without loaded unwind rows */
	UNWIND_IS_NO_MAPPING = 8,      /* an address on the stack is in no mapping that is known */
	UNWIND_IS_FAULT = 16,	       /* the stack could not be read further */
	UNWIND_IS_NO_ROW = 32,	       /* an address has no row, or the stack contradicts its row */
	UNWIND_IS_FRAME_POINTERS = 64, /* some frames were found by frame pointers */
	UNWIND_IS_SHED = 128,	       /* with UNWIND_IS_TRUNCATED: to keep within the budget */
	/*
	 * not of a walk: a kernel stack of a thread that was interrupted on its CPU, so that its
	 * leaf is what the thread ran
	 */
	UNWIND_IS_SAMPLE = 256,
	UNWIND_IS_COMPAT = 512, /* the thread runs 32-bit code, whose stacks are not walked */
};

#define UNWIND_ANY_EXEC	    0xffffffffU
#define UNWIND_TICK_NS	    10000000ULL /* unit of a process's start time in /proc */
#define UNWIND_SEGMENTS_MAX 4096	/* maximum executable mappings of a process */

_Static_assert(sizeof(struct unwind_row) == 4, "a row is half a word");
_Static_assert(sizeof(struct unwind_frame) == 8, "a frame is a word");
_Static_assert(sizeof(struct unwind_rule) == 16, "a rule is two words");
_Static_assert(sizeof(struct unwind_part) == 8, "a part is a word");
_Static_assert(sizeof(struct unwind_table) == 24, "a table has no padding");
_Static_assert(sizeof(struct unwind_segment) == 40, "a segment has no padding");
_Static_assert(sizeof(struct unwind_code_key) == 40, "a key has no padding");
_Static_assert(sizeof(struct unwind_code) == 24, "code has no padding");
_Static_assert(sizeof(struct unwind_process) == 56, "a process has no padding");

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_UNWIND_SHARED_H
#define STACKD_BPF_UNWIND_SHARED_H

/*
 * What the walk of user stacks in the kernel and the daemon both see: rows compiled from call
 * frame information, where they are, and what processes have mapped. Written by the daemon through
 * shared memory, read by the programs; explicit widths, no padding.
 */

#include <linux/types.h>

/* How the frame of the code from pc on, up to the next row, is left. */
enum unwind_kind {
	UNWIND_INVALID, /* not known: no information, or a rule the walk does not have */
	UNWIND_END,	/* the thread's first function: there is no caller */
	UNWIND_SP,	/* CFA = sp + 8 * cfa */
	UNWIND_BP,	/* CFA = bp + 8 * cfa */
	UNWIND_PLT,	/* CFA = sp + 8, 16 from byte cfa of a 16-byte entry on */
	UNWIND_SIGNAL,	/* the kernel's frame of a signal handler */
	UNWIND_RULE,	/* by the rule that is cfa words behind the table's frames */
	UNWIND_FRAME,	/* code known to keep frame pointers */
	UNWIND_SWITCH,	/* as UNWIND_BP, but sp is on another stack: the caller's may be anywhere */
};

enum { UNWIND_BX_LOST = 255 };

/*
 * The caller's bp is at CFA + 8 * bp, or kept where that is 0; its pc is at CFA - 8. Its bx, which
 * only ld.so's lazy resolver is left by, is at CFA - 8 * bx, likewise, unless it is lost. A file
 * has some hundred that are different, which its rows name by number.
 */
struct unwind_frame {
	__s32 cfa;
	__s16 bp;
	__u8 kind;
	__u8 bx;
};

/* From pc on, in bytes from the page's start, frames are as frame says. */
struct unwind_row {
	__u16 pc;
	__u16 frame;
};

enum unwind_cfa_kind {
	UNWIND_CFA_REGISTER, /* register + cfa_offset */
	UNWIND_CFA_MEMORY,   /* what is at register + cfa_offset, plus cfa_add */
};

enum unwind_saved_kind {
	UNWIND_SAVED_NOT, /* kept by the callee */
	UNWIND_SAVED_CFA, /* at CFA + offset */
	UNWIND_SAVED_BP,  /* at bp + offset */
	UNWIND_SAVED_IN,  /* in the register whose number is offset */
	UNWIND_SAVED_LOST,
	UNWIND_SAVED_SP, /* at sp + offset */
};

/* Two words. Registers by their DWARF numbers. */
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
 * A file's code is cut in parts, each of which may be there or not: stacks are of little of what a
 * compiler has. A part is its pages and then its rows, half a word each. A page is how many rows it
 * has, in the lower bits, and the number of the first one in the part, which is at the page's
 * start; 0 where the file's code has ended before.
 */
enum {
	UNWIND_PAGE_SHIFT = 11,
	UNWIND_PART_SHIFT = 15,
	UNWIND_PART_PAGES = 1 << (UNWIND_PART_SHIFT - UNWIND_PAGE_SHIFT),
	UNWIND_ROWS_BITS = 12, /* of a page, for its rows: at most one a byte */
	UNWIND_ROW_STEPS = 12, /* halvings until one row of a page is left */
};

struct unwind_part {
	__u32 at;   /* in half words; 0: absent */
	__u32 used; /* set by walks, cleared by the daemon */
};

enum unwind_state {
	UNWIND_ABSENT, /* not loaded (yet), or no room */
	UNWIND_LOADED,
	UNWIND_NO_ROWS, /* the file has no call frame information */
};

/* One a file. state is written last when it is loaded. */
struct unwind_table {
	__u32 state;
	__u32 used;  /* set by walks, cleared by the daemon */
	__u32 parts; /* in words, one each; behind them are the frames */
	__u32 n_parts;
	__u32 n_frames;
	__u32 n_words; /* frames and rules */
};

/* One executable mapping; address - bias is what rows count in. */
struct unwind_segment {
	__u64 start;
	__u64 end;
	__u64 bias;
	__u64 state; /* unwind_state_of(); 0: not known */
	__u32 table;
	__u32 is_generated; /* code made at run time: frame pointers are all there is */
};

/* Which state of which file is mapped, and where its first byte would be. Never 0. */
static inline __u64 unwind_state_of(__u64 inode, __u64 size, __s64 mtime_ns, __u64 base)
{
	__u64 h = inode * 0x9e3779b97f4a7c15ULL + size;

	h = (h ^ (h >> 29)) * 0x9e3779b97f4a7c15ULL + (__u64)mtime_ns;
	h = (h ^ (h >> 29)) * 0x9e3779b97f4a7c15ULL + base;
	return (h ^ (h >> 32)) | 1;
}

/*
 * The mappings of one image of one process: n segments from first on, sorted. The segment before
 * them is a header whose bias is the generation; another one there means that they are gone. A
 * reader may find one half of an entry and another's half: then check is wrong.
 */
struct unwind_process {
	__u64 leader_boot_ns; /* 0: known to the tick only, then ticks counts */
	__u64 ticks;
	__u64 generation;
	__u32 tgid;
	__u32 exec_gen; /* UNWIND_ANY_EXEC: not known, and there was no exec since it was read */
	__u32 first;
	__u32 n;
	__u64 check; /* unwind_check() */
	/*
	 * Which segments were seen to be mapped (of 32, see unwind_seen_bit()), and, in the upper
	 * half, when: the sequence of the memory's mappings. Not in check: walks write it.
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
 * Code as the kernel has it mapped: one state of a file, and where in it. The vdso is all zeros but
 * for its size; so is code made at run time, whose size is 0.
 */
struct unwind_code_key {
	__u64 inode;
	__u64 size;
	__s64 mtime_ns;
	__u64 offset; /* in the file, bytes */
	__u32 dev;    /* of the super block; not always what stat() says */
	__u32 generation;
};

/* Of which table it is: at a mapping's start rows are for this many bytes from the base. */
struct unwind_code {
	__u64 from_base;
	__u32 table;
	__u32 is_generated;
	__u64 check; /* unwind_code_check() */
};

/* A reader may find the place of one key given to another one meanwhile. */
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

/* A mapping that the daemon had not told of, found by a walk. */
struct unwind_mapping_found {
	__u64 start;
	__u64 end;
	struct unwind_code_key key;
};

enum { UNWIND_FOUND_MAX = 4 };

/* What ended a walk, and how far it is to be trusted. */
enum unwind_flag {
	UNWIND_IS_WHOLE = 1,	       /* it reached the thread's first function */
	UNWIND_IS_TRUNCATED = 2,       /* there are more frames than fit */
	UNWIND_IS_NO_TABLE = 4,	       /* the rows of a file are not loaded */
	UNWIND_IS_NO_MAPPING = 8,      /* an address in nothing that is known to be mapped */
	UNWIND_IS_FAULT = 16,	       /* the stack could not be read there */
	UNWIND_IS_INVALID = 32,	       /* no row says how to go on, or the stack contradicts it */
	UNWIND_IS_FRAME_POINTERS = 64, /* some frames were found by frame pointers */
};

#define UNWIND_ANY_EXEC	    0xffffffffU
#define UNWIND_TICK_NS	    10000000ULL /* what /proc counts in */
#define UNWIND_SEGMENTS_MAX 4096	/* of one process */

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

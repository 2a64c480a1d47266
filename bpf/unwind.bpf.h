/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_UNWIND_BPF_H
#define STACKD_BPF_UNWIND_BPF_H

/*
 * Walks user stacks of code without frame pointers. A walk stores the frames of the current task,
 * leaf first, in struct unwind_walk, with flags that say how it ended. Unwind rows and mappings
 * come from the daemon, in maps that all programs share. x86-64 only. Needs bpf_loop() (5.17) and
 * bpf_task_pt_regs() (5.15).
 *
 * A file that includes this one may define two macros before: UNWIND_READ, the name of its own
 * function that reads the stack, and UNWIND_MARKS_PARTS, 0 if the walk must not write to the
 * tables. maps.bpf.h defines UNWIND_DEPTH_NOW, the present maximum number of frames; without it,
 * the maximum is UNWIND_DEPTH.
 */

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "call_site.h"
#include "layout.h"
#include "trace.bpf.h"
#include "unwind_code.bpf.h"
#include "unwind_shared.h"

enum {
	UNWIND_DEPTH = 127,
	UNWIND_SEGMENT_STEPS = 12, /* maximum steps of a binary search in a process's segments */
	UNWIND_USER_CS = 0x33,	   /* value of cs in 64-bit code of user space */
	/*
	 * maximum size in bytes of a frame that is found by frame pointers alone; stacks are 8 MiB
	 */
	UNWIND_FRAME_BYTES = 8 << 20,
};

/* Which code of a frame a walk reads; only one word of each kind is needed at a time. */
enum unwind_code_read {
	UNWIND_READ_HERE,   /* around the next instruction */
	UNWIND_READ_CALLER, /* before the return address */
	UNWIND_READ_BEHIND, /* at the return address */
	UNWIND_CODE_READS,
};

/*
 * The words of all unwind tables: their rows, frames and rules, and an entry for each part (32 KiB)
 * of a file's code. The daemon sets the size of this map and of the unwind maps that follow.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} unwind_words SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_table);
} unwind_tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_segment);
} unwind_segments SEC(".maps");

/* Says where the mappings of each process are in unwind_segments, by tgid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_process);
} unwind_processes SEC(".maps");

/*
 * Each kind of BPF program has a struct unwind_walk of its own, as a sampler may interrupt another
 * program's walk.
 */
enum unwind_walker {
	UNWIND_AT_SWITCH,
	UNWIND_AT_SAMPLE,
	UNWIND_AT_WAKING,
	UNWIND_AT_EXEC, /* not for a walk: memory for facts about the new program at an exec */
	UNWIND_WALKERS,
};

/* A walk from a file or a control group up its path. */
struct name_walk {
	/*
	 * address in the kernel of the struct dentry or struct kernfs_node that the walk has
	 * reached
	 */
	__u64 at;
	__u64 mount;		  /* address in the kernel of the struct mount that `at` is in */
	__u64 first, first_mount; /* where the walk up a path begins */
	__u64 id;		  /* hash of the components that the walk has passed */
	__u32 n;		  /* number of bytes in text[] */
	__u8 has_text;		  /* 1: the components are to be stored in text[] */
	__u8 is_whole;		  /* 1: the walk has reached the root of the path */
	__u8 pad[2];
	char text[NAME_BYTES + NAME_COMPONENT]; /* the components of the path, as in record_name */
};

/*
 * bp_at and bx_at have an address or one of these values. START: the register has the value of the
 * first frame. NONE: its value is not known. READ: bx has been read already.
 */
enum unwind_bp { UNWIND_BP_START, UNWIND_BP_NONE };
enum unwind_bx { UNWIND_BX_START, UNWIND_BX_NONE, UNWIND_BX_READ };

struct unwind_walk {
	__u64 ip[UNWIND_DEPTH + 1];
	__u64 pc, sp, bp;
	__u64 bp_at;	 /* address that bp was read from, or an enum unwind_bp */
	__u64 bx, bx_at; /* bx_at: address to read bx from if needed, or enum unwind_bx */
	/*
	 * version of the process's mappings that the walk uses: the daemon gives each new set of
	 * mappings a new number; 0: it has stored no mappings of the process
	 */
	__u64 generation;
	__u64 sequence;		 /* unwind_sequence() of the process's mappings */
	__u64 regs;		 /* address of the task's struct pt_regs, in the kernel */
	__u64 start, size, bias; /* the mapping that the last frame is in */
	struct unwind_table table;
	__u32 first, n_segments;
	__u32 tgid;
	__u32 seen; /* a bit for each segment known to be still mapped, see unwind_seen_bit() */
	__u32 n;    /* number of frames */
	__u32 flags;
	__u32 is_exact; /* 1: pc is the next instruction, not a return address behind a call */
	__u32 is_generated;
	__u32 pad;
	struct unwind_search search;
	struct unwind_trace trace;
	struct name_walk name;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, UNWIND_WALKERS);
	__type(key, __u32);
	__type(value, struct unwind_walk);
} unwind_walks SEC(".maps");

/*
 * Sets a flag and returns 1, which stops the walk. Steps of a walk return 0 to continue or 1 to
 * stop, as bpf_loop() expects.
 */
static __always_inline long unwind_stop(struct unwind_walk *w, __u32 flag)
{
	w->flags |= flag;
	return 1;
}

#ifndef UNWIND_MARKS_PARTS
/* 1: walks mark the parts of the tables that they use, so that the daemon keeps these parts */
#define UNWIND_MARKS_PARTS 1
#endif

#ifdef UNWIND_READ
/* Reads another task's stack. Defined by the file that includes this one. */
static __always_inline bool UNWIND_READ(void *to, __u32 size, __u64 from);
#define unwind_read UNWIND_READ
/* Reads a word of another task's code. Defined by the file that includes this one. */
static __always_inline bool unwind_read_code(__u64 *to, __u64 from, enum unwind_code_read which);
#else
static __always_inline bool unwind_read_code(__u64 *to, __u64 from, enum unwind_code_read which)
{
	return !bpf_probe_read_user(to, sizeof(*to), (void *)from);
}

static __always_inline bool unwind_read(void *to, __u32 size, __u64 from)
{
	return !bpf_probe_read_user(to, size, (void *)from);
}
#endif

/*
 * Returns bp and records in the trace that the walk depends on it. Most walks do not depend on it,
 * as bp is rarely a frame pointer.
 */
static __always_inline __u64 unwind_bp(struct unwind_walk *w)
{
	if (w->bp_at == UNWIND_BP_START)
		w->trace.has_bp = 1;
	else if (w->bp_at != UNWIND_BP_NONE)
		trace_add(&w->trace, w->bp_at, w->bp);
	return w->bp;
}

/*
 * Makes a mapping the current one of the walk, and marks the unwind table with this number as used.
 * False if there is no such table.
 */
static __always_inline bool unwind_take(struct unwind_walk *w, __u64 start, __u64 size, __u64 bias,
					__u32 number, __u32 is_generated)
{
	struct unwind_table *t = bpf_map_lookup_elem(&unwind_tables, &number);

	if (!t)
		return false;
	w->start = start;
	w->size = size;
	w->bias = bias;
	w->is_generated = is_generated;
	w->table = *t;
	if (!t->used)
		t->used = 1;
	return true;
}

/*
 * Returns the bit of struct unwind_process.seen for segment i, or 32 if it has none. Only the
 * lowest 8 and the highest 24 segments have one. Programs are mapped at the lowest addresses, and
 * the libraries that they are linked with at the highest. Code that is loaded later lies between
 * these, and is least often in stacks.
 */
static __always_inline __u32 unwind_seen_bit(const struct unwind_walk *w, __u32 i)
{
	__u32 from_last = w->n_segments - 1 - i;

	if (i < 8)
		return i;
	return from_last < 24 ? 8 + from_last : 32;
}

/*
 * Notes that a segment is still mapped, so that later walks need not check it until the process's
 * mappings change.
 */
static __always_inline void unwind_note_seen(struct unwind_walk *w, __u32 bit)
{
	struct unwind_process *p = bpf_map_lookup_elem(&unwind_processes, &w->tgid);
	__u64 old, new;

	w->seen |= 1U << (bit & 31);
	if (!p || p->generation != w->generation)
		return;
	old = p->seen;
	new = old >> 32 == w->sequence >> 32 ? old : w->sequence;
	__sync_val_compare_and_swap(&p->seen, old, new | 1ULL << (bit & 31));
}

/*
 * Finds the mapping at an address and makes it the walk's current mapping. Takes the daemon's
 * segment for this address if it is known to be still mapped. Otherwise looks up what the kernel
 * has mapped there, as another library may be there by now. False if there is no code at the
 * address.
 */
static __always_inline bool unwind_find(struct unwind_walk *w, __u64 at)
{
	__u32 low = w->first, n = w->n_segments, half, middle, i, bit;
	struct unwind_search *search = &w->search;
	struct unwind_segment *s;
	int found;

	search->segment.end = 0;
	if (!n)
		goto look;
	for (i = 0; i < UNWIND_SEGMENT_STEPS && n > 1; i++) {
		half = n / 2;
		middle = low + half;
		s = bpf_map_lookup_elem(&unwind_segments, &middle);
		if (!s)
			return false;
		if (s->start <= at)
			low = middle;
		n -= half;
	}
	s = bpf_map_lookup_elem(&unwind_segments, &low);
	if (s && at - s->start < s->end - s->start)
		search->segment = *s;
look:
	bit = unwind_seen_bit(w, low - w->first);
	s = &search->segment;
	found = UNWIND_CODE_SAME;
	if (!s->end || ((s->state || s->is_generated) && (bit > 31 || !(w->seen >> bit & 1))))
		found = unwind_code_find(search, at);
	if (found == UNWIND_CODE_FOUND)
		return unwind_take(w, search->start, search->size, search->bias, search->table,
				   search->is_generated);
	if (found != UNWIND_CODE_SAME || !s->end) {
		/* A return address outside any code is bogus: drop the frame that has it. */
		if (found == UNWIND_CODE_NONE && w->n > 1)
			w->n--;
		return false;
	}
	if (bit <= 31 && !(w->seen >> bit & 1))
		unwind_note_seen(w, bit);
	return unwind_take(w, s->start, s->end - s->start, s->bias, s->table, s->is_generated);
}

static __always_inline __u64 *unwind_word(__u32 index)
{
	return bpf_map_lookup_elem(&unwind_words, &index);
}

static __always_inline __u32 unwind_half_word(__u32 index)
{
	__u64 *word = unwind_word(index / 2);

	if (!word)
		return 0;
	return index & 1 ? *word >> 32 : (__u32)*word;
}

/*
 * Finds how to step to the caller from the code at an address. Returns 0 and sets *frame. If the
 * step is not known, returns the enum unwind_flag that says why.
 */
static __always_inline __u32 unwind_find_frame(struct unwind_walk *w, __u64 at,
					       struct unwind_frame *frame)
{
	__u64 pc = at - w->bias, number = pc >> UNWIND_PART_SHIFT, *word;
	__u32 low, n, half, i, row;
	struct unwind_part *part;

	if (number >= w->table.n_parts)
		return UNWIND_IS_NO_ROW;
	part = (struct unwind_part *)unwind_word(w->table.parts + (__u32)number);
	low = part ? *(volatile __u32 *)&part->at : 0;
	if (!part || !low)
		return UNWIND_IS_NO_TABLE;
	if (UNWIND_MARKS_PARTS && !part->used)
		part->used = 1;
	n = unwind_half_word(low + (pc >> UNWIND_PAGE_SHIFT & (UNWIND_PART_PAGES - 1)));
	low += UNWIND_PART_PAGES + (n >> UNWIND_ROWS_BITS);
	n &= (1 << UNWIND_ROWS_BITS) - 1;
	if (!n)
		return UNWIND_IS_NO_ROW;
	pc &= (1 << UNWIND_PAGE_SHIFT) - 1;
	for (i = 0; i < UNWIND_ROW_STEPS && n > 1; i++) {
		half = n / 2;
		if ((unwind_half_word(low + half) & 0xffff) <= pc)
			low += half;
		n -= half;
	}
	row = unwind_half_word(low) >> 16;
	if (row >= w->table.n_frames)
		return UNWIND_IS_NO_ROW;
	word = unwind_word(w->table.parts + w->table.n_parts + row);
	if (!word)
		return UNWIND_IS_NO_ROW;
	*(__u64 *)frame = *word;
	return 0;
}

/*
 * Makes the caller's frame the present frame of the walk. The arguments are the caller's registers.
 */
static __always_inline long unwind_enter(struct unwind_walk *w, __u64 pc, __u64 sp, __u64 bp,
					 __u64 bp_at)
{
	/* A new thread's stack may begin with a 0 in place of a return address. */
	if (!pc)
		return unwind_stop(w, UNWIND_IS_WHOLE);
	w->pc = pc;
	w->sp = sp;
	w->bp = bp;
	w->bp_at = bp_at;
	w->is_exact = 0;
	return 0;
}

/* True if cfa can be the caller's frame: stacks grow down, so it must lie above the present sp. */
static __always_inline bool unwind_is_frame(const struct unwind_walk *w, __u64 cfa)
{
	return cfa > w->sp && !(cfa & 7);
}

/*
 * Stores the address at which the frame at cfa saved bx. The walk reads bx from there only if it
 * needs the value, which is rare.
 */
static __always_inline void unwind_note_bx(struct unwind_walk *w, __u64 cfa, __u32 bx)
{
	if (bx)
		w->bx_at = bx == UNWIND_BX_LOST ? UNWIND_BX_NONE : cfa - 8 * (__u64)bx;
}

/*
 * Steps to the caller, whose return address lies right below the CFA. Most functions save bp right
 * below the return address, so that one read gets both.
 */
static __always_inline long unwind_plain(struct unwind_walk *w, __u64 cfa, __s32 bp_words,
					 __u32 bx_words)
{
	__u64 pair[2] = { w->bp, 0 }, bp_at = w->bp_at;

	if (!unwind_is_frame(w, cfa))
		return unwind_stop(w, UNWIND_IS_NO_ROW);
	if (bp_words)
		bp_at = cfa + 8 * (__s64)bp_words;
	if (bp_words == -2) {
		if (!unwind_read(pair, sizeof(pair), bp_at))
			return unwind_stop(w, UNWIND_IS_FAULT);
	} else {
		if (!unwind_read(&pair[1], sizeof(pair[1]), cfa - sizeof(pair[1])))
			return unwind_stop(w, UNWIND_IS_FAULT);
		if (bp_words && !unwind_read(&pair[0], sizeof(pair[0]), bp_at))
			return unwind_stop(w, UNWIND_IS_FAULT);
	}
	trace_add(&w->trace, cfa - sizeof(pair[1]), pair[1]);
	unwind_note_bx(w, cfa, bx_words);
	return unwind_enter(w, pair[1], cfa, pair[0], bp_at);
}

static __always_inline long unwind_frame_pointer(struct unwind_walk *w)
{
	w->flags |= UNWIND_IS_FRAME_POINTERS;
	if (!unwind_bp(w))
		return unwind_stop(w, UNWIND_IS_WHOLE);
	return unwind_plain(w, w->bp + 16, -2, UNWIND_BX_LOST);
}

/*
 * Steps to the caller from code that was made at run time, which has no call frame information: by
 * the code that it goes on with, if that only returns, else by its frame pointer. Not inlined, so
 * that unwind_step() takes less of the BPF stack.
 */
static __noinline long unwind_generated(struct unwind_walk *w)
{
	__u64 code = 0;
	__u32 bytes;

	if (!w)
		return 1;
	if (!w->is_exact) {
		if (!unwind_read_code(&code, w->pc, UNWIND_READ_BEHIND))
			return unwind_stop(w, UNWIND_IS_FAULT);
		bytes = call_site_leaves(code);
		if (bytes)
			return unwind_plain(w, w->sp + bytes + 8, 0, 0);
	}
	return unwind_frame_pointer(w);
}

/*
 * Tells whether an address can be a return address: it lies right behind a call, or a signal
 * handler returns to it. Returns 0, or the enum unwind_flag that says why not.
 */
static __always_inline __u32 unwind_prove(__u64 address)
{
	__u64 code = 0;

	if (!unwind_read_code(&code, address - sizeof(code), UNWIND_READ_CALLER))
		return UNWIND_IS_FAULT;
	if (call_site_is(code))
		return 0;
	if (!unwind_read_code(&code, address, UNWIND_READ_BEHIND))
		return UNWIND_IS_FAULT;
	return call_site_is_signal(code) ? 0 : UNWIND_IS_NO_ROW;
}

/*
 * True if the bp that the frame below cfa has saved can be a frame pointer: it points to the stack
 * above that frame, as it does if the caller keeps frame pointers, too.
 */
static __always_inline bool unwind_is_chained(__u64 cfa, __u64 bp)
{
	return bp - cfa < UNWIND_FRAME_BYTES && !(bp & 7);
}

/*
 * Steps to the caller from code without call frame information, in a file where such code keeps
 * frame pointers. Nothing but the code and the stack tells whether this function has set its frame
 * pointer, so the step has to be proved: the return address lies right behind a call, and the frame
 * is aligned as the ABI demands. V8's code does not align its frames, but each of them has a frame
 * pointer: a frame off the alignment has to be chained to the caller's instead. At the first
 * instructions of a function, the frame is found by sp. A global function, so that the verifier
 * checks it only once.
 */
__noinline int unwind_proved(struct unwind_walk *w)
{
	__u64 pair[2] = {}, code = 0, cfa, bp, bp_at;
	int frame = CALL_SITE_SET;
	__u32 flag;

	if (!w)
		return 1;
	if (w->is_exact) {
		if (!unwind_read_code(&code, w->pc - 1, UNWIND_READ_HERE))
			return unwind_stop(w, UNWIND_IS_FAULT);
		frame = call_site_frame(code);
	}
	cfa = frame == CALL_SITE_SET	? unwind_bp(w) + 16
	      : frame == CALL_SITE_NONE ? w->sp + 8
					: w->sp + 16;
	if (!unwind_is_frame(w, cfa) || cfa - w->sp > UNWIND_FRAME_BYTES)
		return unwind_stop(w, UNWIND_IS_NO_ROW);
	if (!unwind_read(pair, sizeof(pair), cfa - 16))
		return unwind_stop(w, UNWIND_IS_FAULT);
	if (cfa & 15 && (frame != CALL_SITE_SET || !unwind_is_chained(cfa, pair[0])))
		return unwind_stop(w, UNWIND_IS_NO_ROW);
	flag = unwind_prove(pair[1]);
	if (flag)
		return unwind_stop(w, flag);
	bp = frame == CALL_SITE_NONE ? w->bp : pair[0];
	bp_at = frame == CALL_SITE_NONE ? w->bp_at : cfa - 16;
	trace_add(&w->trace, cfa - 8, pair[1]);
	w->flags |= UNWIND_IS_FRAME_POINTERS;
	unwind_note_bx(w, cfa, UNWIND_BX_LOST);
	return (int)unwind_enter(w, pair[1], cfa, bp, bp_at);
}

/* Steps out of a signal handler, by the registers that the kernel saved on the stack. */
static __noinline long unwind_signal(struct unwind_walk *w)
{
	enum { BP, BX, DX, AX, CX, SP, IP, SAVED };
	__u64 saved[SAVED], at;

	if (!w)
		return 1;
	/*
	 * struct ucontext begins with flags, link and the alternate stack, 40 bytes; r8 to r15, di
	 * and si follow
	 */
	at = w->sp + 40 + 8 * 10;
	if (!unwind_read(saved, sizeof(saved), at))
		return unwind_stop(w, UNWIND_IS_FAULT);
	trace_add(&w->trace, at + 8 * SP, saved[SP]);
	trace_add(&w->trace, at + 8 * IP, saved[IP]);
	unwind_enter(w, saved[IP], saved[SP], saved[BP], at + 8 * BP);
	w->bx_at = at + 8 * BX;
	w->is_exact = 1;
	return 0;
}

static __always_inline bool unwind_bx(struct unwind_walk *w, __u64 *out)
{
	if (w->bx_at == UNWIND_BX_NONE)
		return false;
	if (w->bx_at != UNWIND_BX_READ) {
		if (!unwind_read(&w->bx, sizeof(w->bx), w->bx_at))
			return false;
		trace_add(&w->trace, w->bx_at, w->bx);
		w->bx_at = UNWIND_BX_READ;
	}
	*out = w->bx;
	return true;
}

/*
 * Reads a register by its DWARF number. Only sp, bp and bx are known in all frames, the others in
 * the first one only. False if the register is not known.
 */
static __always_inline bool unwind_register(struct unwind_walk *w, __u32 number, __u64 *out)
{
	struct pt_regs___kernel *regs = (void *)w->regs;
	const void *from;

	switch (number) {
	case 6:
		*out = unwind_bp(w);
		return true;
	case 7:
		*out = w->sp;
		return true;
	case 0:
		from = &regs->ax;
		break;
	case 1:
		from = &regs->dx;
		break;
	case 2:
		from = &regs->cx;
		break;
	case 3:
		if (w->bx_at != UNWIND_BX_START)
			return unwind_bx(w, out);
		w->trace.is_partial = 1; /* bx still has the value of the first frame */
		return !bpf_probe_read_kernel(out, sizeof(*out), &regs->bx);
	case 4:
		from = &regs->si;
		break;
	case 5:
		from = &regs->di;
		break;
	case 8:
		from = &regs->r8;
		break;
	case 9:
		from = &regs->r9;
		break;
	case 10:
		from = &regs->r10;
		break;
	case 11:
		from = &regs->r11;
		break;
	case 12:
		from = &regs->r12;
		break;
	case 13:
		from = &regs->r13;
		break;
	case 14:
		from = &regs->r14;
		break;
	case 15:
		from = &regs->r15;
		break;
	default:
		return false;
	}
	w->trace.is_partial = 1;
	return w->n == 1 && !bpf_probe_read_kernel(out, sizeof(*out), from);
}

static __always_inline bool unwind_rule_cfa(struct unwind_walk *w, const struct unwind_rule *rule,
					    __u64 *cfa)
{
	__u64 at;

	if (!unwind_register(w, rule->cfa_register, cfa))
		return false;
	*cfa += (__s64)rule->cfa_offset;
	if (rule->cfa_kind == UNWIND_CFA_REGISTER)
		return true;
	at = *cfa;
	if (!unwind_read(cfa, sizeof(*cfa), at))
		return false;
	trace_add(&w->trace, at, *cfa);
	*cfa += (__s64)rule->cfa_add;
	return true;
}

/*
 * Steps to the caller by a struct unwind_rule. Code that realigns its stack, vfork and big frames
 * need such rules.
 */
static __noinline long unwind_by_rule(struct unwind_walk *w, __u32 number, __u32 bx_words)
{
	__u64 cfa = 0, pc = 0, bp, bp_at, at, *word;
	struct unwind_rule rule;

	if (!w || number + 1 >= w->table.n_words)
		return 1;
	bp = w->bp;
	bp_at = w->bp_at;
	number += w->table.parts + w->table.n_parts;
	word = unwind_word(number);
	if (!word)
		return 1;
	*(__u64 *)&rule = *word;
	word = unwind_word(number + 1);
	if (!word)
		return 1;
	*((__u64 *)&rule + 1) = *word;
	/* vfork keeps its return address in a register, so its frame may be empty. */
	if (!unwind_rule_cfa(w, &rule, &cfa) ||
	    (!unwind_is_frame(w, cfa) && rule.pc_kind != UNWIND_SAVED_IN))
		return unwind_stop(w, UNWIND_IS_NO_ROW);
	if (rule.bp_kind == UNWIND_SAVED_LOST) {
		bp = 0;
		bp_at = UNWIND_BP_NONE;
	} else if (rule.bp_kind != UNWIND_SAVED_NOT) {
		bp_at = rule.bp_kind == UNWIND_SAVED_CFA  ? cfa
			: rule.bp_kind == UNWIND_SAVED_BP ? unwind_bp(w)
							  : w->sp;
		bp_at += (__s64)rule.bp_offset;
		if (!unwind_read(&bp, sizeof(bp), bp_at))
			return unwind_stop(w, UNWIND_IS_FAULT);
	}
	if (rule.pc_kind == UNWIND_SAVED_IN) {
		if (!unwind_register(w, (__u32)rule.pc_offset, &pc))
			return unwind_stop(w, UNWIND_IS_NO_ROW);
	} else {
		at = cfa + (__s64)rule.pc_offset;
		if (!unwind_read(&pc, sizeof(pc), at))
			return unwind_stop(w, UNWIND_IS_FAULT);
		trace_add(&w->trace, at, pc);
	}
	unwind_note_bx(w, cfa, bx_words);
	return unwind_enter(w, pc, cfa, bp, bp_at);
}

/*
 * Ends the walk in code of which no way to the caller is known. The walk is whole if this code,
 * once its callee returns, does nothing but end the thread: then it has no caller. Not inlined, so
 * that unwind_step() takes less of the BPF stack.
 */
static __noinline long unwind_unknown(struct unwind_walk *w)
{
	__u64 code = 0;

	if (!w)
		return 1;
	if (!w->is_exact && unwind_read_code(&code, w->pc, UNWIND_READ_BEHIND) &&
	    call_site_exits(code))
		return unwind_stop(w, UNWIND_IS_WHOLE);
	return unwind_stop(w, UNWIND_IS_NO_ROW);
}

static __always_inline long unwind_leave(struct unwind_walk *w, __u64 at, struct unwind_frame f)
{
	switch (f.kind) {
	case UNWIND_SP:
		return unwind_plain(w, w->sp + 8 * (__s64)f.cfa, f.bp, f.bx);
	case UNWIND_SWITCH:
		w->flags |= UNWIND_IS_FRAME_POINTERS;
		w->sp = 0;
		/* fallthrough */
	case UNWIND_BP:
		return unwind_plain(w, unwind_bp(w) + 8 * (__s64)f.cfa, f.bp, f.bx);
	case UNWIND_END:
		return unwind_stop(w, UNWIND_IS_WHOLE);
	case UNWIND_PLT:
		return unwind_plain(w, w->sp + ((at & 15) >= (__u64)f.cfa ? 16 : 8), 0, 0);
	case UNWIND_SIGNAL:
		return unwind_signal(w);
	case UNWIND_RULE:
		if (unwind_by_rule(w, (__u32)f.cfa, f.bx)) {
			if (!w->flags)
				w->flags = UNWIND_IS_NO_ROW;
			return 1;
		}
		return 0;
	case UNWIND_FRAME:
		return unwind_frame_pointer(w);
	case UNWIND_FRAME_PROVED:
		return unwind_proved(w) != 0; /* the verifier wants to see that it is 0 or 1 */
	default:
		return unwind_unknown(w);
	}
}

static long unwind_step(__u32 i, void *context)
{
	/* bpf_loop() only accepts a pointer to the BPF stack as its context. */
	struct unwind_walk *w = *(struct unwind_walk **)context;
	struct unwind_frame frame = {};
	__u32 flag;
	__u64 at;

	if (i >= UNWIND_DEPTH)
		return 1;
	/*
	 * A return address may lie behind the last byte of the calling function, so look up the
	 * byte before it.
	 */
	at = w->pc - !w->is_exact;
	w->ip[i] = w->pc;
	w->n = i + 1;
	if (at - w->start >= w->size && !unwind_find(w, at))
		return unwind_stop(w, UNWIND_IS_NO_MAPPING);
	if (w->is_generated)
		return unwind_generated(w);
	if (w->table.state != UNWIND_LOADED)
		return unwind_stop(w, w->table.state == UNWIND_ABSENT ? UNWIND_IS_NO_TABLE
								      : UNWIND_IS_NO_ROW);
	flag = unwind_find_frame(w, at, &frame);
	/*
	 * Right after an exec, pc is the program's first instruction, and there is no code before
	 * it.
	 */
	if (!flag && frame.kind == UNWIND_INVALID && !i && !w->is_exact) {
		w->is_exact = 1;
		flag = unwind_find_frame(w, at + 1, &frame);
	}
	if (flag)
		return unwind_stop(w, flag);
	return unwind_leave(w, at, frame);
}

/*
 * Returns a number whose upper half changes whenever the process's mappings do. Before 6.4 the
 * upper half is the number of TLB flushes, which changes when mapped pages are unmapped and at some
 * other times.
 */
static __always_inline __u64 unwind_sequence(struct task_struct *task)
{
	struct mm_struct___6_14 *of_6_14 = (void *)task->mm;
	struct mm_struct___6_4 *of_6_4 = (void *)task->mm;

	if (bpf_core_field_exists(of_6_14->mm_lock_seq.sequence))
		return (__u64)of_6_14->mm_lock_seq.sequence << 32;
	if (bpf_core_field_exists(of_6_4->mm_lock_seq))
		return (__u64)(__u32)of_6_4->mm_lock_seq << 32;
	return (__u64)task->mm->context.tlb_gen.counter << 32;
}

/*
 * Finds the segments (struct unwind_segment) in which the daemon has stored the mappings of the
 * task's process. Ignores them if they belong to an earlier process with that pid, or to the
 * program before an exec.
 */
static __always_inline void unwind_find_process(struct unwind_walk *w, struct task_struct *task)
{
	__u64 boot_ns = task->group_leader->start_boottime;
	__u32 tgid = (__u32)task->tgid, header;
	struct unwind_process *entry = bpf_map_lookup_elem(&unwind_processes, &tgid), p;
	struct unwind_segment *s;

	w->n_segments = 0;
	w->generation = 0;
	w->first = 0;
	w->seen = 0;
	w->tgid = tgid;
	w->search.has_segments = 0;
	w->sequence = unwind_sequence(task);
	if (!entry)
		return;
	p = *entry;
	if (p.check != unwind_check(&p) || p.tgid != tgid || !p.n)
		return;
	if (p.leader_boot_ns ? p.leader_boot_ns != boot_ns : p.ticks != boot_ns / UNWIND_TICK_NS)
		return;
	if (p.exec_gen != UNWIND_ANY_EXEC && p.exec_gen != (__u32)task->self_exec_id)
		return;
	header = p.first - 1;
	s = bpf_map_lookup_elem(&unwind_segments, &header);
	if (!s || s->bias != p.generation)
		return;
	w->first = p.first;
	w->n_segments = p.n;
	w->generation = p.generation;
	w->search.has_segments = 1;
	if (p.seen >> 32 == w->sequence >> 32)
		w->seen = (__u32)p.seen;
}

/* True if the task has user memory. An exiting task, or one in an exec, may have dropped it. */
static __always_inline bool unwind_has_memory(struct task_struct *task)
{
	return task->mm && task->mm->start_code;
}

/*
 * Begins a walk at the task's user-space registers. Returns false for a task that runs 32-bit code,
 * which cannot be walked: the walk then has one frame, and UNWIND_IS_COMPAT in its flags.
 */
static __always_inline bool unwind_start(struct unwind_walk *w, struct task_struct *task,
					 struct pt_regs___kernel *regs)
{
	w->pc = regs->ip;
	w->sp = regs->sp;
	w->bp = regs->bp;
	w->bp_at = UNWIND_BP_START;
	w->bx_at = UNWIND_BX_START;
	w->regs = (__u64)regs;
	w->search.mm = (__u64)task->mm;
	w->search.n_found = 0;
	w->trace.n = w->trace.n_parts = w->trace.bytes = 0;
	w->trace.is_partial = w->trace.has_bp = 0;
	w->generation = 0;
	w->size = 0;
	w->n = 0;
	w->flags = 0;
	/*
	 * In a system call, pc is behind the syscall instruction, and this may be the last
	 * instruction of its function: pc is not exact then. The syscall instruction copies pc to
	 * cx, so that both are equal. At the start of a signal handler and after an exec, they
	 * differ, and pc is exact: it is the next instruction.
	 */
	w->is_exact = (__s64)regs->orig_ax == -1 || regs->cx != regs->ip;
	if (regs->cs == UNWIND_USER_CS)
		return true;
	w->ip[0] = w->pc;
	w->n = 1;
	w->flags = UNWIND_IS_COMPAT;
	return false;
}

/*
 * Begins a walk of the current task's user stack. NULL if there is none. Iterators cannot use this
 * for other tasks, as the walk reads the current task's memory.
 */
static __always_inline struct unwind_walk *unwind_begin(struct task_struct *task, __u32 walker)
{
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &walker);
	struct pt_regs___kernel *regs = (void *)bpf_task_pt_regs(task);

	if (!w || !regs->ip || !unwind_has_memory(task))
		return NULL;
	if (unwind_start(w, task, regs))
		unwind_find_process(w, task);
	return w;
}

#ifndef UNWIND_DEPTH_NOW
#define UNWIND_DEPTH_NOW UNWIND_DEPTH
#endif

/* Runs the walk to its end: ip[] then has n frames. False if bpf_loop() failed. */
static __always_inline bool unwind_go_on(struct unwind_walk *w)
{
	__u32 depth = UNWIND_DEPTH_NOW;

	if (w->flags)
		return true;
	if (bpf_loop(depth, unwind_step, &w, 0) < 0)
		return false;
	if (!(w->flags & ~UNWIND_IS_FRAME_POINTERS))
		w->flags |= depth < UNWIND_DEPTH ? UNWIND_IS_TRUNCATED | UNWIND_IS_SHED
						 : UNWIND_IS_TRUNCATED;
	return true;
}

/* Walks the current task's user stack. Returns the walk, or NULL if there is no user stack. */
static __always_inline struct unwind_walk *unwind_user(struct task_struct *task, __u32 walker)
{
	struct unwind_walk *w = unwind_begin(task, walker);

	return w && unwind_go_on(w) ? w : NULL;
}

#endif

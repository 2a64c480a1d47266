/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_USTACK_CACHE_BPF_H
#define STACKD_BPF_USTACK_CACHE_BPF_H

/*
 * A cache of user stacks, as threads mostly sleep where they slept before. It keeps the words of
 * the stack on which a walk depended. If the next walk would begin at the same pc and sp, and these
 * words are unchanged, the cache returns the id of the known stack. Otherwise the stack is walked
 * again.
 */

#include "mapping.bpf.h"

enum {
	USTACK_ENTRIES = 64,
	/*
	 * if this number of traces have been kept one after the other, and none of them was used,
	 * no more traces are kept
	 */
	USTACK_TRIES = 8,
};

/* Where a walk began, what the walk depended on, and the stack that it found. */
struct ustack_entry {
	__u64 pc, sp, bp;
	__u64 generation, sequence;
	struct stack_owner owner;
	__u64 id; /* id of the stack; 0: none yet */
	__u32 is_exact;
	__u32 epoch; /* number of the window in which the stack was sent */
	__u32 has_trace;
	__u32 tries;
	struct unwind_trace trace;
};

/*
 * The cached stacks, by a hash of the thread and of where it sleeps. Each CPU has its own, so no
 * lock is needed.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, USTACK_ENTRIES);
	__type(key, __u32);
	__type(value, struct ustack_entry);
} ustack_cache SEC(".maps");

/*
 * A copy of the words of a trace. It has twice TRACE_BYTES, so that the verifier sees that no part
 * ends behind it.
 */
struct ustack_words {
	__u64 word[2 * TRACE_BYTES / 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ustack_words);
} ustack_words SEC(".maps");

static __always_inline bool ustack_is_here(const struct ustack_entry *p,
					   const struct unwind_walk *w,
					   const struct stack_owner *owner)
{
	return p->pc == w->pc && p->sp == w->sp && p->is_exact == w->is_exact &&
	       p->generation == w->generation && p->sequence == w->sequence &&
	       p->owner.tgid == owner->tgid && p->owner.exec_gen == owner->exec_gen &&
	       p->owner.leader_boot_ns == owner->leader_boot_ns;
}

/* True if all words of the trace still have the values that the walk read. */
static __always_inline bool trace_is_unchanged(const struct unwind_trace *t)
{
	__u32 zero = 0, n = t->n, i, begin, end;
	struct ustack_words *words = bpf_map_lookup_elem(&ustack_words, &zero);
	__u64 changed = 0;

	if (!words)
		return false;
	for (i = 0; i < TRACE_PARTS; i++) {
		if (i >= t->n_parts)
			break;
		begin = t->part[i] & (TRACE_BYTES - 8);
		end = i + 1 < t->n_parts ? t->part[(i + 1) & (TRACE_PARTS - 1)] : t->bytes;
		if (!unwind_read((char *)words + begin, (end - begin) & (TRACE_BYTES - 1),
				 t->from[i]))
			return false;
	}
	for (i = 0; i < TRACE_WORDS; i++) {
		if (i >= n)
			break;
		changed |= words->word[t->at[i] & (TRACE_BYTES / 8 - 1)] ^ t->value[i];
	}
	return !changed;
}

static __always_inline void ustack_begin(struct ustack_entry *p, const struct unwind_walk *w,
					 const struct stack_owner *owner)
{
	p->pc = w->pc;
	p->sp = w->sp;
	p->is_exact = w->is_exact;
	p->generation = w->generation;
	p->sequence = w->sequence;
	p->owner = *owner;
	p->id = 0;
	p->has_trace = p->tries = 0;
}

/*
 * Stores which stack a walk found. Keeps the trace of the walk if the same stack came twice in a
 * row and is whole: a walk that ended early may get further when the daemon has loaded the unwind
 * rows that it lacked.
 */
static __always_inline void ustack_note(struct ustack_entry *p, const struct unwind_walk *w,
					__u64 bp, __u64 id, __u32 epoch)
{
	bool is_same = p->id == id;

	p->id = id;
	p->epoch = epoch;
	if (!is_same || !(w->flags & UNWIND_IS_WHOLE) || w->search.n_found || w->trace.is_partial ||
	    p->tries == USTACK_TRIES) {
		p->has_trace = p->has_trace && is_same;
		return;
	}
	p->tries++;
	p->bp = bp;
	p->has_trace = !bpf_probe_read_kernel(&p->trace, sizeof(p->trace), &w->trace);
}

/*
 * Returns the id of the current task's user stack, from the cache or by a walk. STACK_NONE if there
 * is none.
 */
static __always_inline __u64 user_stack(struct cpu *cpu, struct unwind_walk *w, __u64 hint,
					const struct stack_owner *owner)
{
	__u64 id, bp = w->bp;
	struct ustack_entry *p;
	__u32 epoch, i;

	i = hint & (USTACK_ENTRIES - 1);
	p = bpf_map_lookup_elem(&ustack_cache, &i);
	if (!p)
		return STACK_NONE;
	if (!ustack_is_here(p, w, owner)) {
		ustack_begin(p, w, owner);
	} else if (p->has_trace && p->epoch == cut.epoch && (!p->trace.has_bp || p->bp == bp) &&
		   trace_is_unchanged(&p->trace)) {
		p->tries = 0;
		return p->id;
	}
	if (!unwind_go_on(w))
		return STACK_NONE;
	id = stack_take_user_sent(cpu, w, owner, &epoch);
	ustack_note(p, w, bp, id, epoch);
	return id;
}

#endif

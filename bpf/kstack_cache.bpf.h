/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_KSTACK_CACHE_BPF_H
#define STACKD_BPF_KSTACK_CACHE_BPF_H

/*
 * A cache of kernel stacks. A program's context lies on the kernel stack itself. So if every return
 * address of a known stack is found at its known distance from the context, the present stack is
 * the known one. The kernel's own walk takes ten times as long as this check.
 *
 * The kernel's frames have fixed sizes (since 4.20 it has no arrays of variable length), so the
 * return addresses of one chain of calls have fixed distances from the context. Only the outermost
 * address, at the very top, lies behind a random gap (CONFIG_RANDOMIZE_KSTACK_OFFSET, 5.13). The
 * distances are learned: searching up from the context gives a lower bound for each address, and
 * searching down from the top an upper one. Stale words of earlier calls can keep the two bounds
 * apart for a while, until the random gap happens to be small. Until the bounds are equal for all
 * addresses, the kernel walks the stack.
 */

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "stack.bpf.h"

enum {
	KSTACK_ENTRIES = 64,
	KSTACK_FRAMES = 48,
	KSTACK_WORDS = 512, /* words of the longest stack that the cache takes */
	KSTACK_TRIES = 1024,
	KSTACK_HINTS = 256,
};

struct kstack_entry {
	__u64 id;
	__u32 epoch; /* the window in which the stack was last sent */
	__u32 n;
	__u32 is_known; /* 1: low[i] equals high[i] for every i */
	__u32 tries;
	__u64 ip[KSTACK_FRAMES];
	/*
	 * Return address i lies between low[i] and high[i] words above the BPF program's context,
	 * which is on the same stack.
	 */
	__u16 low[KSTACK_FRAMES], high[KSTACK_FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KSTACK_ENTRIES);
	__type(key, __u32);
	__type(value, struct kstack_entry);
} kstack_cache SEC(".maps");

/* A copy of the kernel stack, from the BPF program's context up to user space's registers. */
struct kstack_words {
	__u64 word[2 * KSTACK_WORDS];
	__u64 base, top; /* first and last address, as numbers: the verifier restricts pointers */
	__u32 n;
	__u32 at; /* index of the frame that is searched for next */
	__u64 hints[KSTACK_HINTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kstack_words);
} kstack_words SEC(".maps");

static __always_inline bool kstack_read(struct kstack_words *s, void *ctx, void *top)
{
	__u64 size;

	*(void *volatile *)&s->base = ctx;
	*(void *volatile *)&s->top = top;
	size = *(volatile __u64 *)&s->top - *(volatile __u64 *)&s->base;
	if (size < 64 || size > 8 * KSTACK_WORDS || size & 7)
		return false;
	s->n = (__u32)size / 8;
	return !bpf_probe_read_kernel(s->word, (__u32)size, ctx);
}

static __always_inline bool kstack_is_unchanged(const struct kstack_entry *c,
						const struct kstack_words *s, __u32 first)
{
	__u32 n = c->n, last = s->n - 1, i;
	__u64 changed;

	if (n < 4 || n > KSTACK_FRAMES || c->low[n - 2] >= last)
		return false;
	changed = s->word[last & (KSTACK_WORDS - 1)] ^ c->ip[n - 1];
	for (i = 0; i < KSTACK_FRAMES; i++) {
		if (i >= n - 1)
			break;
		if (i >= first)
			changed |= s->word[c->low[i] & (KSTACK_WORDS - 1)] ^ c->ip[i];
	}
	return !changed;
}

struct kstack_search {
	struct kstack_entry *entry;
	struct kstack_words *stack;
	/*
	 * index of the first frame whose return address is on the stack at a higher address than
	 * the BPF program's context
	 */
	__u32 first;
	__u32 pad;
};

/*
 * One iteration of bpf_loop(): compares word i of the copied stack, counted from the lowest
 * address, with the return address that is searched for. If they are equal, this address is at
 * least i words from the context: i becomes its lower bound, unless the present one is higher. The
 * search goes on with the next return address.
 */
static long kstack_search_up(__u32 i, void *context)
{
	struct kstack_search *search = context;
	struct kstack_entry *c = search->entry;
	struct kstack_words *s = search->stack;
	__u32 at = s->at;

	if (i >= KSTACK_WORDS || at >= KSTACK_FRAMES || at + 1 >= c->n)
		return 1;
	if (s->word[i] != c->ip[at])
		return 0;
	if (c->low[at] < i)
		c->low[at] = (__u16)i;
	s->at = at + 1;
	return 0;
}

/*
 * One iteration of bpf_loop(), from the top of the copied stack down: compares a word with the
 * return address that is searched for. If they are equal, the word's index becomes the upper bound
 * of this address, unless the present one is lower. The search goes on with the return address
 * before it.
 */
static long kstack_search_down(__u32 i, void *context)
{
	struct kstack_search *search = context;
	struct kstack_entry *c = search->entry;
	struct kstack_words *s = search->stack;
	__u32 at = s->at - 1, word = s->n - 2 - i;

	if (word >= KSTACK_WORDS || at >= KSTACK_FRAMES || s->at <= search->first)
		return 1;
	if (s->word[word] != c->ip[at])
		return 0;
	if (c->high[at] > word)
		c->high[at] = (__u16)word;
	s->at = at;
	return 0;
}

static __always_inline bool kstack_is_known(const struct kstack_entry *c, __u32 first)
{
	__u32 i;

	for (i = 0; i < KSTACK_FRAMES; i++) {
		if (i + 1 >= c->n)
			break;
		if (i >= first && c->low[i] != c->high[i])
			return false;
	}
	return true;
}

/*
 * Narrows an entry's bounds low[] and high[]: searches for the entry's return addresses in the
 * copied stack. False if one of them is not there.
 */
static __always_inline bool kstack_search(struct kstack_entry *c, struct kstack_words *s,
					  __u32 first)
{
	struct kstack_search search = { c, s, first, 0 };
	__u32 n = c->n, last = s->n - 1;

	if (n < 4 || n > KSTACK_FRAMES || s->word[last & (KSTACK_WORDS - 1)] != c->ip[n - 1])
		return false;
	s->at = first;
	bpf_loop(KSTACK_WORDS, kstack_search_up, &search, 0);
	if (s->at != n - 1)
		return false;
	/* On the way down s->at is one more than the index of the frame that is searched for. */
	s->at = n - 1;
	bpf_loop(KSTACK_WORDS, kstack_search_down, &search, 0);
	return s->at == first;
}

/*
 * True if a tracer (fgraph, rethook, kretprobe) has replaced return addresses on the task's stack.
 * The cache cannot learn from such a stack where the return addresses are.
 */
static __always_inline bool kstack_is_traced(struct task_struct *task)
{
	if (bpf_core_field_exists(task->ret_stack) && task->ret_stack)
		return true;
	if (bpf_core_field_exists(task->rethooks) && task->rethooks.first)
		return true;
	return bpf_core_field_exists(task->kretprobe_instances) && task->kretprobe_instances.first;
}

static __always_inline void kstack_note(struct kstack_entry *c, struct kstack_words *s,
					struct task_struct *task, const struct scratch *frames,
					__u32 n, __u32 first, __u64 id)
{
	__u32 i;

	if (c->id != id) {
		c->id = id;
		c->n = n;
		c->is_known = c->tries = 0;
		if (n > KSTACK_FRAMES || bpf_probe_read_kernel(c->ip, sizeof(c->ip), frames->ip))
			c->tries = KSTACK_TRIES;
		for (i = 0; i < KSTACK_FRAMES; i++) {
			c->low[i] = 0;
			c->high[i] = 0xffff;
		}
	}
	if (c->is_known || c->tries >= KSTACK_TRIES || kstack_is_traced(task))
		return;
	c->tries++;
	if (!kstack_search(c, s, first))
		c->tries = KSTACK_TRIES;
	else
		c->is_known = kstack_is_known(c, first);
}

/*
 * One lookup of the current task's kernel stack. kstack_find() fills it and kstack_learn() uses it.
 */
struct kstack_lookup {
	struct kstack_words *stack;
	struct scratch *frames; /* buffer for the frames of the kernel's own walk */
	__u64 hint;
	/*
	 * index of the first frame whose return address is on the stack at a higher address than
	 * the BPF program's context
	 */
	__u32 first;
	bool is_read;
};

/*
 * Returns the id of the current task's kernel stack if the cache has it, else 0. After a 0, the
 * caller lets the kernel walk the stack into look->frames and calls kstack_learn(). It cannot do so
 * if look->frames is NULL. `top` is the address of user space's registers. `first_ip` is the first
 * frame if that is not on the stack itself, else 0.
 */
static __always_inline __u64 kstack_find(struct kstack_lookup *look, void *ctx, void *top,
					 __u64 hint, __u32 first, __u64 first_ip)
{
	__u32 zero = 0, i;
	struct kstack_entry *c;

	look->frames = scratch_get(SCRATCH_SWITCH);
	look->stack = bpf_map_lookup_elem(&kstack_words, &zero);
	look->hint = hint & (KSTACK_HINTS - 1);
	look->first = first;
	if (!look->stack)
		look->frames = NULL;
	if (!look->frames)
		return 0;
	i = look->stack->hints[look->hint] & (KSTACK_ENTRIES - 1);
	c = bpf_map_lookup_elem(&kstack_cache, &i);
	look->is_read = kstack_read(look->stack, ctx, top);
	if (look->is_read && c && c->is_known && c->id == look->stack->hints[look->hint] &&
	    c->epoch == cut.epoch && (!first_ip || c->ip[0] == first_ip) &&
	    kstack_is_unchanged(c, look->stack, first))
		return c->id;
	return 0;
}

/*
 * Sends the stack that the kernel's walk found, stores it in the cache and returns its id. `size`
 * is the size of the stack's frames in bytes, or a negative errno.
 */
static __always_inline __u64 kstack_learn(struct kstack_lookup *look, struct cpu *cpu,
					  struct task_struct *task, long size)
{
	struct kstack_words *s = look->stack;
	struct stack_owner kernel = {};
	__u32 i, epoch;
	struct kstack_entry *c;
	__u64 id;

	if (size <= 0)
		return STACK_FAULT;
	id = stack_take_sent(cpu, look->frames->ip, (__u32)size / 8, 0, &kernel, 0, &epoch);
	s->hints[look->hint] = id;
	i = id & (KSTACK_ENTRIES - 1);
	c = bpf_map_lookup_elem(&kstack_cache, &i);
	if (!look->is_read || !c)
		return id;
	kstack_note(c, s, task, look->frames, (__u32)size / 8, look->first, id);
	c->epoch = epoch;
	return id;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_STACK_BPF_H
#define STACKD_BPF_STACK_BPF_H

/*
 * Identifies stacks by content: a stack's id is a 64-bit hash of its frames. The frames themselves
 * are sent through the ring once per window. An id is never reused for other frames.
 */

#include "maps.bpf.h"

#define YOUNG_NS 2000000000ULL /* greatest age of a process that counts as short-lived */

struct stack_owner {
	__u64 leader_boot_ns;
	__u32 tgid; /* 0: the stack is the kernel's */
	__u32 exec_gen;
};

static __always_inline __u64 hash_mix(__u64 h, __u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
	return h ^ (h >> 32);
}

/*
 * Returns the id of a stack of n frames. It depends on the owner, too: equal addresses in two
 * processes, or before and after an exec, are two stacks.
 */
static __always_inline __u64 stack_hash(const __u64 *ip, __u32 n, __u32 flags,
					const struct stack_owner *owner, __u64 mappings)
{
	__u64 h = hash_mix(hash_seed, ((__u64)owner->tgid << 32) | owner->exec_gen);
	__u32 i;

	h = hash_mix(h, mappings);
	h = hash_mix(h, (owner->leader_boot_ns + n) ^ ((__u64)flags << 48));
	for (i = 0; i < STACK_DEPTH; i++) {
		if (i >= n)
			break;
		h = hash_mix(h, ip[i]);
	}
	return h < STACK_ID_FIRST ? h + STACK_ID_FIRST : h;
}

/* 1 while a program on this CPU adds an entry to `seen`. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} seen_adding SEC(".maps");

/*
 * Adds an entry to `seen`. Returns -EBUSY if this program is an NMI that interrupted another one
 * that does so: on kernels before commit 89edbdfc5d03 (June 2026), it would wait for ever for the
 * locks of the map, which that one holds.
 */
static __noinline long seen_add(__u64 id, __u64 epoch)
{
	__u32 zero = 0, *adding = bpf_map_lookup_elem(&seen_adding, &zero);
	long r;

	if (!adding || *adding)
		return -16; /* EBUSY */
	*adding = 1;
	r = bpf_map_update_elem(&seen, &id, &epoch, BPF_NOEXIST);
	*adding = 0;
	return r;
}

/* True for the one caller in this window that has to send the stack. */
static __always_inline bool stack_claim(struct cpu *cpu, __u64 id, __u64 epoch)
{
	__u64 *sent = bpf_map_lookup_elem(&seen, &id);
	__u64 old;
	long r;

	if (sent) {
		old = *sent;
		return old != epoch && __sync_val_compare_and_swap(sent, old, epoch) == old;
	}
	r = seen_add(id, epoch);
	if (!r || r == -17 /* EEXIST: another CPU was first */)
		return !r;
	/* EBUSY: this program interrupted an update. The stack may be sent twice. */
	if (r != -16)
		cpu->counts.lost[LOST_STACK_SEEN]++;
	return true;
}

/*
 * Sends a stack. Reserves room in the ring first and only then claims the stack, so whoever claims
 * a stack can send it.
 */
#define STACK_SEND(room)                                                    \
	do {                                                                \
		struct record_stack *r;                                     \
                                                                            \
		r = bpf_ringbuf_reserve(&ring, sizeof(*r) + 8 * (room), 0); \
		if (!r) {                                                   \
			cpu->counts.lost[LOST_STACK_RING]++;                \
			return 0;                                           \
		}                                                           \
		if (!stack_claim(cpu, id, epoch)) {                         \
			bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);           \
			return epoch;                                       \
		}                                                           \
		r->head.type = RECORD_STACK;                                \
		r->head.size = sizeof(*r) + 8 * (room);                     \
		r->id = id;                                                 \
		r->leader_boot_ns = owner->leader_boot_ns;                  \
		r->tgid = owner->tgid;                                      \
		r->exec_gen = owner->exec_gen;                              \
		r->frames = n;                                              \
		r->epoch = epoch;                                           \
		r->flags = walk;                                            \
		r->mappings = mappings;                                     \
		r->pad = 0;                                                 \
		bpf_probe_read_kernel(r->ip, 8 * (room), ip);               \
		cpu->counts.stacks++;                                       \
		bpf_ringbuf_submit(r, flags);                               \
	} while (0)

/*
 * True if the daemon should look at the process at once: the process is young, so it may exit soon,
 * and the daemon lacks something that walks of its stacks need. The walk went through a file that
 * the daemon does not know, a file whose rows are not loaded, or code made at run time, which only
 * the process can name. False while the daemon leaves such processes alone.
 */
static __always_inline bool owner_is_urgent(const struct stack_owner *owner, __u32 walk)
{
	const __u32 unknown = UNWIND_IS_NO_MAPPING | UNWIND_IS_NO_TABLE | UNWIND_IS_FRAME_POINTERS;

	return walk & unknown && owner->tgid && !(cut.shed & SHED_BRIEF) &&
	       bpf_ktime_get_boot_ns() - owner->leader_boot_ns < YOUNG_NS;
}

/*
 * Sends the stack unless it was sent in this window. Returns the window's epoch, or 0 if the ring
 * had no room.
 */
static __always_inline __u32 stack_send(struct cpu *cpu, const __u64 *ip, __u32 n, __u32 walk,
					__u64 id, const struct stack_owner *owner, __u64 mappings)
{
	__u64 epoch = cut.epoch, *sent, used, flags;

	sent = bpf_map_lookup_elem(&seen, &id);
	if (sent && *sent == epoch)
		return epoch;
	used = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
	if (used > ring_stack_bytes) {
		cpu->counts.lost[LOST_STACK_RING]++;
		return 0;
	}
	flags = used > ring_wake_bytes || owner_is_urgent(owner, walk) ? BPF_RB_FORCE_WAKEUP
								       : BPF_RB_NO_WAKEUP;
	if (n <= 32)
		STACK_SEND(32);
	else if (n <= 64)
		STACK_SEND(64);
	else
		STACK_SEND(STACK_DEPTH);
	return epoch;
}

/*
 * Sends a stack of n frames and returns its id. `walk` is a set of enum unwind_flag, `mappings` is
 * as in record_stack. *epoch_out is set to the result of stack_send().
 */
static __always_inline __u64 stack_take_sent(struct cpu *cpu, const __u64 *ip, __u32 n, __u32 walk,
					     const struct stack_owner *owner, __u64 mappings,
					     __u32 *epoch_out)
{
	__u64 id;

	if (n > STACK_DEPTH)
		n = STACK_DEPTH;
	id = stack_hash(ip, n, walk, owner, mappings);
	*epoch_out = stack_send(cpu, ip, n, walk, id, owner, mappings);
	return id;
}

/*
 * Sends the frames that bpf_get_stack() stored in *s, and returns the id of the stack. `r` is the
 * result of bpf_get_stack().
 */
static __always_inline __u64 stack_take_got(struct cpu *cpu, const struct scratch *s, long r,
					    const struct stack_owner *owner, __u32 *epoch_out)
{
	*epoch_out = (__u32)cut.epoch;
	if (r <= 0)
		return STACK_FAULT;
	return stack_take_sent(cpu, s->ip, (__u32)r / 8, 0, owner, 0, epoch_out);
}

/* Does the same as stack_take_got(), for callers that need not know whether the stack was sent. */
static __always_inline __u64 stack_take(struct cpu *cpu, const struct scratch *s, long r,
					const struct stack_owner *owner)
{
	__u32 epoch;

	return stack_take_got(cpu, s, r, owner, &epoch);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_MAPPING_BPF_H
#define STACKD_BPF_MAPPING_BPF_H

/*
 * Sends user stacks to the daemon. Before each stack it sends the mappings that the walk of the
 * stack found and that the daemon did not know.
 */

#include "names.bpf.h"
#include "stack.bpf.h"
#include "unwind.bpf.h"

/*
 * Returns an id of the set of mappings that a stack walk used: those of the process that the daemon
 * knows, and those that the walk itself found.
 */
static __always_inline __u64 mappings_id(struct unwind_walk *w, const struct stack_owner *owner)
{
	__u64 id = hash_mix(w->generation, ((__u64)owner->tgid << 32) | owner->exec_gen);
	__u32 i;

	id = hash_mix(id, owner->leader_boot_ns);
	for (i = 0; i < UNWIND_FOUND_MAX && i < w->search.n_found; i++) {
		id = hash_mix(id, w->search.found[i].start);
		id = hash_mix(id, w->search.found[i].key.inode);
		id = hash_mix(id, w->search.found[i].key.size);
		id = hash_mix(id, (__u64)w->search.found[i].key.mtime_ns);
		id = hash_mix(id, w->search.found[i].key.offset);
	}
	return id | MAPPINGS_FOUND;
}

static __always_inline bool mapping_is_sent(__u64 id, __u64 epoch)
{
	__u64 *sent = bpf_map_lookup_elem(&seen, &id);

	return sent && *sent == epoch;
}

/*
 * Sends each mapping that the walk found, unless it was sent in this window already. Returns
 * mappings_id(), or MAPPINGS_LOST if the ring had no room for one.
 */
static __noinline __u64 mappings_send(struct cpu *cpu, struct unwind_walk *w,
				      const struct stack_owner *owner)
{
	__u64 epoch = cut.epoch, id, name;
	struct record_mapping *r;
	__u32 i;

	if (!cpu || !w || !owner)
		return 0;
	id = mappings_id(w, owner);
	for (i = 0; i < UNWIND_FOUND_MAX && i < w->search.n_found; i++) {
		if (mapping_is_sent(hash_mix(id, i), epoch))
			continue;
		name = name_file(cpu, &w->name, (void *)w->search.files[i]);
		r = bpf_ringbuf_reserve(&ring, sizeof(*r), 0);
		if (!r) {
			cpu->counts.lost[LOST_MAPPING_RING]++;
			return MAPPINGS_LOST;
		}
		if (!stack_claim(cpu, hash_mix(id, i), epoch)) {
			bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
			continue;
		}
		r->head.type = RECORD_MAPPING;
		r->head.size = sizeof(*r);
		r->leader_boot_ns = owner->leader_boot_ns;
		r->tgid = owner->tgid;
		r->exec_gen = owner->exec_gen;
		r->mappings = id;
		r->generation = w->generation;
		r->found = w->search.found[i];
		r->name = name;
		bpf_ringbuf_submit(r, ring_flags());
	}
	return id;
}

static __always_inline __u64 stack_take_user_sent(struct cpu *cpu, struct unwind_walk *w,
						  const struct stack_owner *owner, __u32 *epoch_out)
{
	__u64 mappings = w->generation;

	if (w->search.n_found)
		mappings = mappings_send(cpu, w, owner);
	return stack_take_sent(cpu, w->ip, w->n, w->flags, owner, mappings, epoch_out);
}

static __always_inline __u64 stack_take_user(struct cpu *cpu, struct unwind_walk *w,
					     const struct stack_owner *owner)
{
	__u32 epoch;

	return stack_take_user_sent(cpu, w, owner, &epoch);
}

#endif

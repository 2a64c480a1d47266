/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_IO_TABLE_BPF_H
#define STACKD_BPF_IO_TABLE_BPF_H

/*
 * The open operations of each thread: in go begins, out come frames at the ends, innermost first.
 * A thread is its kernel stack, which system calls have at hand, so nothing need be called to know
 * who it is.
 */

#include "io_kernel.h"

#include <bpf/bpf_helpers.h>

#include "filter.bpf.h"
#include "io_shared.h"
#include "iolat_types.bpf.h"
#include "maps.bpf.h"

/* A power of two; none where the operations that requests are made for are not followed. */
const volatile __u32 n_slots = IO_SLOTS;

/* Mapped into the daemon, which looks for what does not end. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, IO_SLOTS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct io_slot);
} io_slots SEC(".maps");

static __always_inline __u32 slot_index(__u64 stack, __u32 way)
{
	return ((__u32)((stack >> 12) * 0x9e3779b97f4a7c15ULL >> 40) + way) & (n_slots - 1);
}

/*
 * A pointer as a number: the verifier lets nobody calculate with what it knows to be a pointer, but
 * for how far two are apart. What that is from is always the same, so an interrupt does no harm.
 */
static __always_inline __u64 pointer_number(struct cpu *cpu, const void *pointer)
{
	__u64 number = (__u64)pointer;

	if (!*(volatile __u64 *)&cpu->word)
		*(const void *volatile *)&cpu->word = &cut;
	asm volatile("%[number] -= %[from]" : [number] "+r"(number) : [from] "r"(&cut));
	return number + *(volatile __u64 *)&cpu->word;
}

/*
 * The base of a thread's kernel stack. Some verifiers take that for a pointer, others for a number,
 * and none for either: it goes through memory, which an interrupt leaves as it found it.
 */
static __always_inline __u64 stack_number(struct cpu *cpu, struct task_struct *task)
{
	__u64 before = *(volatile __u64 *)&cpu->stack, number;

	*(const void *volatile *)&cpu->stack = ((struct task_struct___io *)task)->stack;
	number = *(volatile __u64 *)&cpu->stack;
	*(volatile __u64 *)&cpu->stack = before;
	return number;
}

/* Where the thread is, which is where it was the last time. */
static __always_inline struct io_slot *slot_find(__u64 stack, __u32 *index)
{
	struct io_slot *slot;
	__u32 i, way;

	for (way = 0; way < IO_WAYS; way++) {
		i = slot_index(stack, way);
		slot = bpf_map_lookup_elem(&io_slots, &i);
		if (slot && slot->stack == stack) {
			*index = i;
			return slot;
		}
	}
	return NULL;
}

/* Or a free place, else one of somebody who has nothing open. */
static __always_inline struct io_slot *slot_take(__u64 stack)
{
	struct io_slot *slot;
	__u32 i, way;
	__u64 other;

	for (way = 0; way < 2 * IO_WAYS; way++) {
		i = slot_index(stack, way & (IO_WAYS - 1));
		slot = bpf_map_lookup_elem(&io_slots, &i);
		if (!slot || slot->depth)
			continue;
		other = slot->stack;
		if ((other && way < IO_WAYS) ||
		    __sync_val_compare_and_swap(&slot->stack, other, stack) != other)
			continue;
		slot->tid = 0; /* to be identified */
		return slot;
	}
	return NULL;
}

/* Of a thread that ends. Once nothing is open in it, another may take it at any moment. */
static __always_inline void slot_leave(struct io_slot *slot, __u64 stack)
{
	*(volatile __u32 *)&slot->depth = 0;
	__sync_val_compare_and_swap(&slot->stack, stack, 0);
}

/* The time that a thread has been off the CPU, less an unknown that stays: both grow together while
 * it runs. Of clocks of one CPU; where those differ by time in interrupts, so does this. */
static __always_inline __u64 task_off_mark(struct task_struct *task)
{
	return task->se.exec_start - task->se.sum_exec_runtime;
}

/* For who asks whose operations they are. A slot has one thread, that one may exec. */
static __always_inline void slot_identify(struct io_slot *slot, struct task_struct *task)
{
	__u32 exec_gen = (__u32)task->self_exec_id, tid = task->pid;

	if (slot->tid == tid && slot->exec_gen == exec_gen)
		return;
	slot->leader_boot_ns = task->group_leader->start_boottime;
	slot->tgid = task->tgid;
	slot->tid = tid;
	slot->exec_gen = exec_gen;
	slot->flags = task->flags & PF_KTHREAD ? IO_KEY_IS_KERNEL : 0;
}

/* Who it is may change meanwhile: what a thread was as it began is what counts, for all within. */
static __always_inline void slot_filter(struct io_slot *slot, struct task_struct *task)
{
	__u32 flags = slot->flags & ~IO_SLOT_IS_UNWANTED;

	if (!filter_has_thread(task) || !filter_has_moment(task))
		flags |= IO_SLOT_IS_UNWANTED;
	slot->flags = flags;
}

static __always_inline void frame_begin(struct cpu *cpu, struct io_slot *slot,
					struct task_struct *task, __u32 layer, __u32 op, __u32 call,
					const void *file)
{
	__u32 depth = slot->depth;
	struct io_frame *frame;

	if (depth >= IO_DEPTH) {
		cpu->counts.lost[LOST_IO_DEPTH]++;
		return;
	}
	if (!depth) {
		slot->generation++;
		slot->device_ns = slot->queue_ns = slot->throttled_ns = 0;
		slot_identify(slot, task);
		slot_filter(slot, task);
	}
	frame = &slot->frames[depth];
	frame->below_ns = 0;
	frame->file = (__u64)file; /* of a kprobe, which has numbers */
	frame->off_mark = task_off_mark(task);
	frame->delay_ns = task->sched_info.run_delay;
	frame->call = call;
	frame->layer = layer;
	frame->op = op;
	frame->start_ns = bpf_ktime_get_ns();
	/* Last: the daemon takes what is below the depth for open since its start. */
	*(volatile __u32 *)&slot->depth = depth + 1;
}

/* Of the innermost operations, whose ends were not seen. */
static __always_inline void frames_drop(struct cpu *cpu, __u32 n)
{
	cpu->counts.ios += n;
	cpu->counts.ios_unseen += n;
}

/* The innermost one of that layer and operation; those within it whose ends were missed go too. */
static __always_inline struct io_frame *frame_end(struct cpu *cpu, struct io_slot *slot,
						  __u32 layer, __u32 op)
{
	struct io_frame *frame;
	__u32 i;

	for (i = 0; i < IO_DEPTH; i++) {
		__u32 at = slot->depth - 1 - i;

		if (at >= IO_DEPTH)
			return NULL;
		frame = &slot->frames[at];
		if (frame->layer == layer && frame->op == op) {
			slot->depth = at;
			if (i)
				frames_drop(cpu, i);
			return frame;
		}
	}
	return NULL;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_IO_TABLE_BPF_H
#define STACKD_BPF_IO_TABLE_BPF_H

/*
 * The table of operations that have begun and not ended. A thread has a slot with a frame for each
 * of its operations: the beginning of an operation adds the frame, the end removes it. The slot is
 * found by the address of the thread's kernel stack, which a BPF program in a system call knows
 * from its context without calling a helper.
 */

#include "io_kernel.h"

#include <bpf/bpf_helpers.h>

#include "filter.bpf.h"
#include "io_shared.h"
#include "iolat_types.bpf.h"
#include "maps.bpf.h"

/*
 * Number of slots in use, a power of two. 0: only block requests are followed, not the operations
 * that they are made for.
 */
const volatile __u32 n_slots = IO_SLOTS;

/* One slot per thread. The daemon maps the array to look for operations that do not end. */
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
 * Turns a pointer into a number with the same value. The verifier forbids arithmetic on pointers.
 * It accepts the difference of two pointers, which is a number for it, and so is each value that
 * was read from memory. So this function computes pointer - &cut + cpu->word: `cut` is a global
 * variable, and cpu->word holds its address. A program that interrupts this function does no harm,
 * because it stores the same value in cpu->word.
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
 * Returns the lowest address of a thread's kernel stack as a number. The verifiers of some kernels
 * treat task->stack as a pointer; a value that is read back from memory (here from cpu->stack) is a
 * number for all of them. A program that interrupts this function restores cpu->stack before it
 * ends.
 */
static __always_inline __u64 stack_number(struct cpu *cpu, struct task_struct *task)
{
	__u64 before = *(volatile __u64 *)&cpu->stack, number;

	*(const void *volatile *)&cpu->stack = ((struct task_struct___io *)task)->stack;
	number = *(volatile __u64 *)&cpu->stack;
	*(volatile __u64 *)&cpu->stack = before;
	return number;
}

/* Returns the slot of the thread with this kernel stack and sets *index, or returns NULL. */
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

/*
 * Returns a slot for the thread with this kernel stack: a free slot, or else one of a thread that
 * is in no operation. NULL if there is neither.
 */
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
		slot->tid = 0; /* makes slot_identify() set the identity of the new thread */
		return slot;
	}
	return NULL;
}

/*
 * Frees the slot of a thread that exits. As soon as depth is 0 another thread may take the slot, so
 * `stack` is cleared only if it is still the same.
 */
static __always_inline void slot_leave(struct io_slot *slot, __u64 stack)
{
	*(volatile __u32 *)&slot->depth = 0;
	__sync_val_compare_and_swap(&slot->stack, stack, 0);
}

/*
 * Returns exec_start - sum_exec_runtime of the thread: this grows only while the thread is off the
 * CPU, because both members grow by the same amount while it runs. exec_start comes from a clock of
 * the CPU that does not count time in interrupts. If the thread moves to another CPU, the result is
 * wrong by the difference of the clocks of the two CPUs.
 */
static __always_inline __u64 task_off_mark(struct task_struct *task)
{
	return task->se.exec_start - task->se.sum_exec_runtime;
}

/* Sets the identity of the slot's thread if the slot is new or the thread has done an exec. */
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

/*
 * Applies the filter when the outermost operation begins; all operations nested in it share the
 * result.
 */
static __always_inline void slot_filter(struct io_slot *slot, struct task_struct *task)
{
	__u32 flags = slot->flags & ~IO_SLOT_IS_UNWANTED;

	if (!filter_has_thread(task) || !filter_has_moment(task))
		flags |= IO_SLOT_IS_UNWANTED;
	slot->flags = flags;
}

static __always_inline void frame_begin(struct cpu *cpu, struct io_slot *slot,
					struct task_struct *task, __u32 layer, __u32 op, __u32 call,
					const void *file, __u32 iocb_flags)
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
	frame->file = (__u64)file;
	frame->off_mark = task_off_mark(task);
	frame->delay_ns = task->sched_info.run_delay;
	frame->call = call;
	frame->layer = layer;
	frame->op = op;
	frame->iocb_flags = iocb_flags;
	frame->start_ns = bpf_ktime_get_ns();
	/* depth is written last: the daemon reads only frames[0] to frames[depth - 1] */
	*(volatile __u32 *)&slot->depth = depth + 1;
}

/* Counts n operations as ended at an unknown time, as no BPF program saw their ends. */
static __always_inline void frames_drop(struct cpu *cpu, __u32 n)
{
	cpu->counts.ios += n;
	cpu->counts.ios_begun_before += n;
}

/*
 * Ends the innermost operation with this layer and kind: removes its frame and the frames of all
 * operations nested in it. Returns the frame, or NULL if there is none.
 */
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

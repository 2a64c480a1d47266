/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/internal.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/unwind_shared.h"
#include "common/array.h"
#include "common/base.h"
#include "daemon/drain/call_stream.h"
#include "daemon/process/process.h"
#include "daemon/window/resolver.h"
#include "daemon/window/stack.h"

/*
 * The ways in which the walk of a stack can end. Each has a flag of the BPF programs (UNWIND_IS_),
 * a flag of struct stack (STACK_IS_), and an index in the statistics of the process (enum
 * walk_end).
 */
static const struct {
	uint32_t walk;
	unsigned int stack;
	enum walk_end end;
} walk_flags[] = {
	{ UNWIND_IS_WHOLE, 0, WALK_WHOLE },
	{ UNWIND_IS_TRUNCATED, STACK_IS_TRUNCATED, WALK_TRUNCATED },
	{ UNWIND_IS_NO_TABLE, STACK_IS_NO_TABLE, WALK_NO_TABLE },
	{ UNWIND_IS_NO_MAPPING, STACK_IS_NO_MAPPING, WALK_NO_MAPPING },
	{ UNWIND_IS_FAULT, STACK_IS_FAULT, WALK_FAULT },
	{ UNWIND_IS_NO_ROW, STACK_IS_NO_ROW, WALK_NO_ROW },
	{ UNWIND_IS_SHED, STACK_IS_SHED, WALK_SHED },
	{ UNWIND_IS_COMPAT, STACK_IS_COMPAT, WALK_COMPAT },
	{ UNWIND_IS_FRAME_POINTERS, STACK_IS_FRAME_POINTERS, WALK_FRAME_POINTERS },
};

static unsigned int stack_flags_of(uint32_t walk)
{
	unsigned int sum = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(walk_flags); i++)
		if (walk & walk_flags[i].walk)
			sum |= walk_flags[i].stack;
	return sum;
}

/*
 * Reports to the process table how the walk of a stack ended, and at which address. If the walk
 * lacked a mapping or unwind tables, the process table takes care that they are loaded. Returns
 * STACK_IS_SHED if they are missing only to keep within the budget, else 0.
 */
static unsigned int handle_walk(struct drain *drain, struct process *process,
				const struct record_stack *record)
{
	uint64_t address = record->frames ? record->ip[record->frames - 1] : 0;
	unsigned int ends = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(walk_flags); i++)
		if (record->flags & walk_flags[i].walk)
			ends |= 1U << walk_flags[i].end;
	return process_table_note_walk(drain->processes, process, address - (record->frames > 1),
				       ends)
		       ? STACK_IS_SHED
		       : 0;
}

/*
 * Stores a reference to the stack, taken over from the caller. It keeps the stack in the table
 * until the stack's window is built. When out of memory, drops the reference: the stack may then be
 * freed too early.
 */
static void held_add(struct held_stacks *held, struct stack *stack)
{
	if (!stack)
		return;
	if (array_reserve(held->v, held->capacity, held->n + 1)) {
		stack_unref(stack);
		return;
	}
	stack_hold(stack);
	held->v[held->n++] = stack;
}

static void held_fini(struct held_stacks *held)
{
	size_t i;

	for (i = 0; i < held->n; i++)
		stack_release_hold(held->v[i]);
	free(held->v);
	*held = (struct held_stacks){};
}

void drain_stacks_roll(struct drain *drain)
{
	held_fini(&drain->held[1]);
	drain->held[1] = drain->held[0];
	drain->held[0] = (struct held_stacks){};
}

static bool is_lost(const struct stack *stack)
{
	return stack && stack->flags & STACK_IS_LOST;
}

void drain_stacks_hold_opens(struct drain *drain, const struct window *window)
{
	struct cut *cut = probe_cut(drain->probe);
	struct held_stacks opens = {};
	size_t i;

	for (i = 0; i < window->n_opens; i++) {
		/*
		 * The programs have sent such a stack, and would not send it again during the wait.
		 */
		if (is_lost(window->opens[i].kernel) || is_lost(window->opens[i].user))
			__atomic_store_n(&cut->lost_epoch, cut->epoch, __ATOMIC_RELAXED);
		held_add(&opens, stack_ref(window->opens[i].kernel));
		held_add(&opens, stack_ref(window->opens[i].user));
	}
	held_fini(&drain->opens);
	drain->opens = opens;
}

void drain_stacks_fini(struct drain *drain)
{
	held_fini(&drain->held[0]);
	held_fini(&drain->held[1]);
	held_fini(&drain->opens);
}

static void handle_stack(struct drain *drain, const struct record_stack *record)
{
	struct process_id id = {
		.pid = (int32_t)record->tgid,
		.exec_gen = record->exec_gen,
		.start_boot_ns = record->leader_boot_ns,
	};
	struct process *process = NULL;
	struct stack *stack;
	unsigned int flags = stack_flags_of(record->flags);
	bool is_new;

	if (record->frames > STACK_DEPTH)
		return;
	if (record->tgid) {
		process = process_table_see(drain->processes, &id, false, NULL);
		if (!process)
			return;
	}
	stack = stack_table_put(drain->stacks, record->id, process, (const uint64_t *)record->ip,
				record->frames, &is_new);
	if (process)
		flags |= handle_walk(drain, process, record);
	process_unref(process);
	if (!stack)
		return;
	if (is_new) {
		stack->flags |= flags;
		stack->is_sample = record->flags & UNWIND_IS_SAMPLE;
		stack->mappings = record->mappings;
		/*
		 * If the resolver's queue is full, drop the stack: its id is unknown until a BPF
		 * program sends the stack again.
		 */
		if (resolver_add_stack(drain->resolver, stack)) {
			stack_table_drop(drain->stacks, stack);
			return;
		}
	}
	held_add(&drain->held[0], stack);
}

static void handle_process(struct drain *drain, const struct record_process *record)
{
	struct process_id id = {
		.pid = (int32_t)record->tgid,
		.exec_gen = record->exec_gen,
		.start_boot_ns = record->leader_boot_ns,
	};
	struct process_id parent = {
		.pid = (int32_t)record->parent.tgid,
		.exec_gen = record->parent.exec_gen,
		.start_boot_ns = record->parent.leader_boot_ns,
	};

	const struct exec_facts facts = {
		.exe_name = record->exe_name,
		.exe_inode = record->exe_inode,
		.group_name = record->group_name,
		.is_known = record->is_known,
	};

	window_builder_add_record(drain->builder, &record->head);
	switch (record->head.type) {
	case RECORD_MOVE:
		if (drain->follows_processes)
			process_table_note_move(drain->processes, &id, record->group_name);
		break;
	case RECORD_FORK:
		if (!record->is_kernel && drain->follows_processes)
			process_table_note_fork(drain->processes, &id, &parent, record->comm,
						record->group_name);
		break;
	case RECORD_EXEC:
		if (drain->follows_processes)
			process_table_note_exec(drain->processes, &id, record->comm, &facts);
		break;
	default:
		if (drain->follows_processes)
			process_table_note_exit(drain->processes, &id);
	}
}

/*
 * Adds a recorded call to the stream. The BPF programs sent the call's stacks before the call, so
 * they are in the stack table already.
 */
static void handle_call(struct drain *drain, const struct record_call *record, size_t size)
{
	struct call call = {
		.time_ns = (int64_t)record->time_ns,
		.count = record->count,
		.pid = (int32_t)record->key.tgid,
		.tid = (int32_t)record->key.tid,
		.cpu = record->cpu,
		.kernel = stack_table_get(drain->stacks, record->key.kstack, false),
		.user = stack_table_get(drain->stacks, record->key.ustack, true),
	};

	memcpy(call.comm, record->comm, strnlen(record->comm, COMM_LEN - 1));
	if (size >= sizeof(struct record_exec_call))
		call.exec = call_exec_new((const struct record_exec_call *)record);
	call_stream_put(drain->calls, &call);
}

static void handle_name(struct drain *drain, const struct record_name *record, size_t size)
{
	if (size >= sizeof(*record) && record->n <= size - sizeof(*record))
		process_table_note_name(drain->processes, record->id, record->text, record->n);
}

void drain_on_record(void *context, const void *data, size_t size)
{
	const struct record_head *head = data;
	struct drain *drain = context;

	if (size < sizeof(*head))
		return;
	switch (head->type) {
	case RECORD_STACK:
		handle_stack(drain, data);
		break;
	case RECORD_CALL:
		handle_call(drain, data, size);
		break;
	case RECORD_FORK:
	case RECORD_EXEC:
	case RECORD_EXIT:
	case RECORD_MOVE:
		handle_process(drain, data);
		break;
	case RECORD_NAME:
		handle_name(drain, data, size);
		break;
	case RECORD_MAPPING:
		process_table_note_mapping(drain->processes, data);
		break;
	default:
		window_builder_add_record(drain->builder, head);
	}
}

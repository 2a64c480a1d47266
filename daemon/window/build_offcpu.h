/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_BUILD_OFFCPU_H
#define STACKD_DAEMON_WINDOW_BUILD_OFFCPU_H

/*
 * Makes windows: in come the raw rows, records and thread states of one cut, out comes a window
 * in which each thread has its share of time and each wait its place. Remembers threads from one
 * window to the next. Owned by the drain and used on its thread only.
 */

#include <stddef.h>
#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/process/process.h"
#include "daemon/window/stack.h"
#include "daemon/window/window.h"

struct assembler;

int assembler_new(struct process_table *processes, struct stack_table *stacks, int64_t min_wait_ns,
		  struct assembler **out);
struct assembler *assembler_free(struct assembler *assembler);

/* As records come from the ring. What does not fit into memory is counted in the next window. */
void assembler_add_wait(struct assembler *assembler, const struct record_wait *record);
void assembler_add_thread_end(struct assembler *assembler, const struct record_thread_end *record);
void assembler_add_open_stack(struct assembler *assembler, const struct record_open_stack *record);
void assembler_add_exec(struct assembler *assembler, const struct record_process *record);

/*
 * One cut: begin with the closing window's bounds and the new epoch, then every thread and row
 * that was read, then finish. The window is the caller's; NULL when out of memory.
 */
void assembler_begin(struct assembler *assembler, int64_t start_ns, int64_t end_ns, uint32_t epoch);
void assembler_add_thread(struct assembler *assembler, const struct thread *thread);
void assembler_add_row(struct assembler *assembler, const struct wait_key *key,
		       const struct wait_sums *sums);
struct window *assembler_finish(struct assembler *assembler);

/* Threads remembered now. */
size_t assembler_threads(const struct assembler *assembler);

#endif

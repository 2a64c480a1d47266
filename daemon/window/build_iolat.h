/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_BUILD_IOLAT_H
#define STACKD_DAEMON_WINDOW_BUILD_IOLAT_H

/*
 * Makes windows of I/O: in come the rows of one cut and what is open at it, out comes a window of
 * operations by layer, device and process, with the devices' names of now. Remembers nothing. Owned
 * by the drain and used on its thread only.
 */

#include <stdint.h>

#include "bpf/io_shared.h"
#include "daemon/process/process.h"
#include "daemon/window/stack.h"
#include "daemon/window/window.h"

struct ios;

int ios_new(struct process_table *processes, struct stack_table *stacks, struct ios **out);
struct ios *ios_free(struct ios *ios);

/*
 * One cut: every row, then finish, with the table of what is open. The window is the
 * caller's; NULL when out of memory.
 */
void ios_add(struct ios *ios, const struct io_key *key, const struct io_sums *sums);
struct window *ios_finish(struct ios *ios, const struct io_slot *slots, size_t n_slots,
			  int64_t start_ns, int64_t end_ns);

#endif

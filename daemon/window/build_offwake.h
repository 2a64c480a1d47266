/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_BUILD_OFFWAKE_H
#define STACKD_DAEMON_WINDOW_BUILD_OFFWAKE_H

/*
 * Makes windows of waits with who ended them: in come the rows of one cut, out comes a window in
 * which each row has its waker. A wait is in the window it ends in, whole. Remembers nothing. Owned
 * by the drain and used on its thread only.
 */

#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/process/process.h"
#include "daemon/window/stack.h"
#include "daemon/window/window.h"

struct wakes;

int wakes_new(struct process_table *processes, struct stack_table *stacks, struct wakes **out);
struct wakes *wakes_free(struct wakes *wakes);

/* One cut: every row, then finish. The window is the caller's; NULL when out of memory. */
void wakes_add(struct wakes *wakes, const struct wake_key *key, const struct wake_sums *sums);
struct window *wakes_finish(struct wakes *wakes, int64_t start_ns, int64_t end_ns);

#endif

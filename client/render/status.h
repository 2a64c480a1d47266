/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_STATUS_H
#define STACKD_CLIENT_RENDER_STATUS_H

/*
 * Prints decoded answers that are not about stacks as text on a page: status, probes, sessions,
 * windows. Borrows the answers. A write error only sets the stream's error flag. Main thread.
 */

#include <stdint.h>

#include "client/base/exit_code.h"
#include "client/render/page.h"
#include "proto/wire.h"

/*
 * Prints the status of the daemon. `now` is the present time in ns since 1970. The ages of the
 * daemon and of its newest window are computed from it.
 */
void render_status(const struct page *page, const struct wire_status_reply *reply, int64_t now);

/* Prints the same in one screen: what is recorded, what it costs, what was lost and reached. */
void render_status_brief(const struct page *page, const struct wire_status_reply *reply,
			 int64_t now);

/*
 * status_check() returns the exit code of `stackctl status --check`; render_check() prints the one
 * line of that check.
 */
enum check_code status_check(const struct wire_status_reply *reply);
void render_check(const struct page *page, const struct wire_status_reply *reply);

/*
 * Prints each probe with its BPF programs, their hooks and, if the kernel measures it, their CPU
 * time.
 */
void render_probes(const struct page *page, const struct wire_probes_reply *reply);

/* Prints on one or two lines what is known of a process, and what is missing. */
void render_settled(const struct page *page, int64_t pid, const struct wire_settled_reply *reply);

/* Prints the names of functions that can be traced. */
void render_functions(const struct page *page, const struct wire_functions_reply *reply);

void render_sessions(const struct page *page, const struct wire_sessions_reply *reply);

/* Prints the windows in their order, with the gaps between them. */
void render_windows(const struct page *page, const struct wire_windows_reply *reply);

#endif

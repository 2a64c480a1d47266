/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_STATUS_H
#define STACKD_CLIENT_RENDER_STATUS_H

/*
 * Stage 8: prints decoded answers that are not about stacks as text on a page: status, probes,
 * sessions, windows. Borrows the answers; write errors stay in the stream. Main thread.
 */

#include <stdint.h>

#include "client/base/exit_code.h"
#include "client/render/page.h"
#include "proto/wire.h"

/* now: ns since 1970; it is used for how long the daemon has been running. */
void render_status(const struct page *page, const struct wire_status_reply *reply, int64_t now);

/* Returns how bad the daemon's state is, for status --check; render_check() prints its one line. */
enum check_code status_check(const struct wire_status_reply *reply);
void render_check(const struct page *page, const struct wire_status_reply *reply);

/* Prints each probe and its BPF programs, with hooks and, if the kernel measures it, their cost. */
void render_probes(const struct page *page, const struct wire_probes_reply *reply);

/* Prints the names of functions that can be traced. */
void render_functions(const struct page *page, const struct wire_functions_reply *reply);

void render_sessions(const struct page *page, const struct wire_sessions_reply *reply);

/* Prints the windows and, between them, the gaps. */
void render_windows(const struct page *page, const struct wire_windows_reply *reply);

#endif

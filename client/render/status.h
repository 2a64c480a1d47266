/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_STATUS_H
#define STACKD_CLIENT_RENDER_STATUS_H

/*
 * Stage 8 for what is not stacks: decoded replies in, lines for a person out. Replies are
 * borrowed; write errors stay in the stream. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "client/base/exit_code.h"
#include "client/render/page.h"
#include "proto/wire.h"

/* now: ns since the epoch, for how long the daemon has been up. */
void render_status(const struct page *page, const struct wire_status_reply *reply, int64_t now);

/* How bad it is, for status --check, and its one line. */
enum check_code status_check(const struct wire_status_reply *reply);
void render_check(const struct page *page, const struct wire_status_reply *reply);

/* with_programs: each BPF program with its hook and, where the kernel counts, its cost. */
void render_probes(const struct page *page, const struct wire_probes *probes, bool with_programs);
void render_sessions(const struct page *page, const struct wire_sessions_reply *reply);
void render_windows(const struct page *page, const struct wire_windows_reply *reply);

/* Standard output as a page. */
struct page page_of_stdout(void);

#endif

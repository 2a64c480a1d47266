/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_LIBBPF_LOG_H
#define STACKD_DAEMON_PROBE_LIBBPF_LOG_H

/*
 * Sends libbpf's messages to the log at level debug and keeps the first warning of each thread: it
 * is the line that says what the kernel refused; those after it are consequences. Any thread; a
 * thread sees its own warning only.
 */

/* Takes over libbpf's output. May be called again. */
void libbpf_log_setup(void);

/* Returns this thread's first warning since the last clear, "" if there was none; borrowed. */
const char *libbpf_log_warning(void);

/* Makes this text the warning: a refusal that came from elsewhere than libbpf. Copied. */
void libbpf_log_set_warning(const char *text);
void libbpf_log_clear(void);

#endif

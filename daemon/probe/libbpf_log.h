/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_LIBBPF_LOG_H
#define STACKD_DAEMON_PROBE_LIBBPF_LOG_H

/*
 * Sends libbpf's messages to the log at level debug and keeps the first warning of each thread. The
 * first warning says what the kernel refused; later ones are consequences of it. Any thread; a
 * thread sees its own warning only.
 */

/* Redirects libbpf's messages to this module. May be called more than once. */
void libbpf_log_setup(void);

/* Returns this thread's first warning since libbpf_log_clear(); "" if there was none. Borrowed. */
const char *libbpf_log_warning(void);

/* Replaces this thread's warning by a copy of the text: a refusal that libbpf did not report. */
void libbpf_log_set_warning(const char *text);
void libbpf_log_clear(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_LIBBPF_LOG_H
#define STACKD_DAEMON_PROBE_LIBBPF_LOG_H

/*
 * Sends libbpf's messages to the daemon's log at level debug, and keeps the first warning of each
 * thread. The first warning tells what the kernel refused; later ones are consequences of it. Any
 * thread; a thread sees only its own warning.
 */

/* Makes libbpf send its messages to this module. May be called more than once. */
void libbpf_log_setup(void);

/*
 * Returns this thread's first warning since libbpf_log_clear(); "" if there was none. The text is
 * borrowed.
 */
const char *libbpf_log_warning(void);

/*
 * Stores a copy of `text` as this thread's warning. Used if the kernel refuses something that this
 * process does without libbpf, so that libbpf has no warning about it.
 */
void libbpf_log_set_warning(const char *text);
void libbpf_log_clear(void);

#endif

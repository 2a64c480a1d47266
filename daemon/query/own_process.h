/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_OWN_PROCESS_H
#define STACKD_DAEMON_QUERY_OWN_PROCESS_H

/*
 * Tells the processes of stackd itself from all others: the daemon and its helpers, also those of
 * earlier runs. Any thread.
 */

#include <stdbool.h>

/*
 * True if a process runs the program `own` and has one of the names that stackd gives its
 * processes. The name alone is not enough: any user can choose that of his own processes. `own` is
 * an absolute path, and " (deleted)" at the end of either path is left out. False if `exe` is NULL.
 */
bool own_process_matches(const char *own, const char *comm, const char *exe);

/* True for the names that stackd gives its processes. */
bool own_process_has_name(const char *comm);

/*
 * True if the process has one of the names, and runs the program that calls this function, or is in
 * the control group of the unit stackd.service, by whatever path that was started. `exe` and
 * `cgroup` may be NULL.
 */
bool own_process_is(const char *comm, const char *exe, const char *cgroup);

#endif

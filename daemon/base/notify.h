/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_NOTIFY_H
#define STACKD_DAEMON_BASE_NOTIFY_H

/*
 * Communicates with the service manager (systemd): sends state changes to NOTIFY_SOCKET, and takes
 * over sockets that the service manager opened. Does nothing if no service manager started the
 * daemon. Any thread.
 */

#include <stdint.h>

/*
 * The number of the first descriptor that a service manager passes. The others have the next
 * numbers.
 */
#define NOTIFY_FDS_START 3

/*
 * Reports that the daemon is ready: it records, and listens on its socket. Called at the start and
 * after a reload.
 */
void notify_ready(void);

/* Sets the status line that `systemctl status` shows. */
void notify_status(const char *format, ...) __attribute__((format(printf, 1, 2)));

void notify_reloading(void);
void notify_stopping(void);

/* Reports that the daemon is alive. Must be called at least once every notify_watchdog_ns(). */
void notify_watchdog(void);

/*
 * Returns the time in ns after which the service manager considers the daemon hung if
 * notify_watchdog() is not called; 0 if it does not check.
 */
int64_t notify_watchdog_ns(void);

/*
 * Returns the number of descriptors that the service manager passed, numbered from NOTIFY_FDS_START
 * on; or a negative errno if the environment variables that describe them are invalid. Makes the
 * descriptors close-on-exec and removes the variables, so that a second call returns 0.
 */
int notify_listen_fds(void);

#endif

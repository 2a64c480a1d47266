/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_NOTIFY_H
#define STACKD_DAEMON_BASE_NOTIFY_H

/*
 * What the service manager is told, and what it hands over: state changes go out through
 * NOTIFY_SOCKET, the number of sockets it passed comes in. Nothing happens where the daemon was
 * not started by one. No state; any thread.
 */

#include <stdint.h>

/* The first descriptor that a service manager passes; the others follow it. */
#define NOTIFY_FDS_START 3

/* Attached and listening (again, after a reload). */
void notify_ready(void);

/* The line shown by `systemctl status`. */
void notify_status(const char *format, ...) __attribute__((format(printf, 1, 2)));

void notify_reloading(void);
void notify_stopping(void);

/* Sign of life; due at least every notify_watchdog_ns(). */
void notify_watchdog(void);

/* The interval in ns after which the manager takes the daemon for dead; 0 where it does not watch.
 */
int64_t notify_watchdog_ns(void);

/*
 * How many descriptors were passed, from NOTIFY_FDS_START on; 0 where none, negative errno when
 * what the manager said makes no sense. They are made close-on-exec and the variables that announce
 * them are removed, so a second call gives 0.
 */
int notify_listen_fds(void);

#endif

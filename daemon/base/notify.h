/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_NOTIFY_H
#define STACKD_DAEMON_BASE_NOTIFY_H

/*
 * Talks to the service manager: reports state changes through NOTIFY_SOCKET and takes the sockets
 * that it passes. Does nothing if no service manager has started the daemon. No state; any thread.
 */

#include <stdint.h>

/* The first descriptor that a service manager passes; the others follow it. */
#define NOTIFY_FDS_START 3

/* Reports that the daemon is attached and listening, at the start and after a reload. */
void notify_ready(void);

/* Sets the line shown by `systemctl status`. */
void notify_status(const char *format, ...) __attribute__((format(printf, 1, 2)));

void notify_reloading(void);
void notify_stopping(void);

/* Reports that the daemon is alive; due at least every notify_watchdog_ns(). */
void notify_watchdog(void);

/*
 * Returns the interval in ns after which the manager takes the daemon for dead; 0 where it does not
 * watch it.
 */
int64_t notify_watchdog_ns(void);

/*
 * Returns how many descriptors were passed, numbered from NOTIFY_FDS_START on, or a negative errno
 * when the variables that announce them make no sense. Makes them close-on-exec and removes the
 * variables, so a second call returns 0.
 */
int notify_listen_fds(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DAEMON_H
#define STACKD_DAEMON_DAEMON_H

/*
 * Runs the daemon: starts the broker, the event loop, the control socket and the recorder, then
 * handles signals, reloads, the watchdog and the status line until a signal stops it, and stops
 * everything in reverse order. Called by main() once, in the thread that becomes the main thread.
 */

struct config;
struct options;

/*
 * Runs until SIGTERM or SIGINT. options outlives the call and is read again for a reload; config is
 * taken and freed. Errors are logged. Returns 0 or a negative errno; -EPERM, -EACCES or -EOPNOTSUPP
 * if a privilege is missing or the kernel refuses BPF programs.
 */
int daemon_run(const struct options *options, struct config *config);

#endif

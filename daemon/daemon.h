/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DAEMON_H
#define STACKD_DAEMON_DAEMON_H

/*
 * Runs the daemon. Starts the broker (the process that opens perf events), the event loop, the
 * control socket and the recorder. Then handles signals, reloads, the watchdog and the status line
 * until a signal ends the loop. Finally stops everything in reverse order. main() calls it once, in
 * the main thread.
 */

struct config;
struct options;

/*
 * Runs the daemon until SIGTERM or SIGINT. The caller must keep `options` until then, because a
 * reload reads them again. Takes ownership of `config` and frees it. `n_passed` is the result of
 * notify_listen_fds(). Logs errors. Returns 0 or a negative errno: -EPERM, -EACCES or -EOPNOTSUPP
 * if a privilege is missing or the kernel refuses BPF programs.
 */
int daemon_run(const struct options *options, struct config *config, int n_passed);

#endif

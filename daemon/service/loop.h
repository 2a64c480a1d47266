/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_LOOP_H
#define STACKD_DAEMON_SERVICE_LOOP_H

/*
 * The event loop of the daemon: calls back for timers and signals, and runs the server, on one
 * thread, to which all functions here belong. libuv's pool of threads does the work of the server.
 */

#include <stdint.h>

struct loop;
struct loop_timer;
struct uv_loop_s;

typedef void (*loop_callback)(void *userdata);
typedef void (*loop_signal_callback)(int signo, void *userdata);

/*
 * Threads of the pool, shared by the loops of a process: so many pieces of work at once, the others
 * wait. More than libuv's four, for a question may wait some seconds for a window to be cut. The
 * environment's UV_THREADPOOL_SIZE is stronger.
 */
#define LOOP_WORKERS 8

/*
 * Ignores SIGPIPE for the whole process: a peer that hangs up is an error of a write. The first
 * one sets the size of the pool: before there are other threads.
 */
int loop_new(struct loop **out);

/*
 * Waits for what is being closed and for work in the pool, so callbacks may still be called in
 * here. Timers, wake-ups and servers must have been freed before, by those who made them. NULL is
 * allowed.
 */
struct loop *loop_free(struct loop *loop);
void loop_freep(struct loop **loop);

/* Runs until loop_stop() is called. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Calls back after first_ns and then every repeat_ns (0: never again); whole milliseconds. */
int loop_timer_new(struct loop *loop, int64_t first_ns, int64_t repeat_ns, loop_callback callback,
		   void *userdata, struct loop_timer **out);
struct loop_timer *loop_timer_free(struct loop_timer *timer);

/* Calls back for a signal for as long as the loop lives. */
int loop_signal_add(struct loop *loop, int signo, loop_signal_callback callback, void *userdata);

/* For the server's files only. */
struct uv_loop_s *loop_uv(struct loop *loop);

#endif

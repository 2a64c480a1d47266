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
 * Threads of libuv's pool, which all loops of a process share. More than libuv's default of four,
 * as a query may wait some seconds for the window in progress to be cut. UV_THREADPOOL_SIZE in the
 * environment overrides it.
 */
#define LOOP_WORKERS 8

/*
 * Makes a loop. Ignores SIGPIPE for the whole process, so that writing to a peer that has hung up
 * is an error. Sets the size of the pool, so that it must be called before there are other threads.
 */
int loop_new(struct loop **out);

/*
 * Waits for handles that are being closed and for work in the pool, so that callbacks may still be
 * called here. Timers and servers must have been freed before. NULL is allowed.
 */
struct loop *loop_free(struct loop *loop);
void loop_freep(struct loop **loop);

/* Runs until loop_stop() is called. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Calls back after first_ns, then every repeat_ns (0: never again), rounded up to milliseconds. */
int loop_timer_new(struct loop *loop, int64_t first_ns, int64_t repeat_ns, loop_callback callback,
		   void *userdata, struct loop_timer **out);
struct loop_timer *loop_timer_free(struct loop_timer *timer);

/* Calls back for a signal for as long as the loop lives. */
int loop_signal_add(struct loop *loop, int signo, loop_signal_callback callback, void *userdata);

/* Returns libuv's loop, for the server. */
struct uv_loop_s *loop_uv(struct loop *loop);

#endif

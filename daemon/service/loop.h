/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_LOOP_H
#define STACKD_DAEMON_SERVICE_LOOP_H

/*
 * The event loop of the daemon. It runs the server and calls functions for timers and signals, all
 * on one thread; the functions here may be called on that thread only. The threads of libuv's pool
 * do the work of the server.
 */

#include <stdint.h>

struct loop;
struct loop_timer;
struct uv_loop_s;

typedef void (*loop_callback)(void *userdata);
typedef void (*loop_signal_callback)(int signo, void *userdata);

/*
 * Number of threads in libuv's pool, which all loops of a process share. It is more than libuv's
 * default of four because a query may occupy a thread for some seconds while it waits for the end
 * of the current window. UV_THREADPOOL_SIZE in the environment is meant for other programs, and is
 * ignored.
 */
#define LOOP_WORKERS 8

/*
 * Makes a loop. Ignores SIGPIPE for the whole process, so that writing to a peer that has hung up
 * only returns an error. Sets an environment variable for the size of the pool, so it must be
 * called before other threads are started.
 */
int loop_new(struct loop **out);

/*
 * Frees the loop. First waits until all handles are closed and all work in the pool is done;
 * callbacks may still be called meanwhile. Before this call, the caller has to free timers and
 * servers. NULL is allowed.
 */
struct loop *loop_free(struct loop *loop);
void loop_freep(struct loop **loop);

/* Runs the loop until loop_stop() is called. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/*
 * Makes a timer that calls `callback` after first_ns, and then every repeat_ns (0: only once). Both
 * times are rounded up to milliseconds.
 */
int loop_timer_new(struct loop *loop, int64_t first_ns, int64_t repeat_ns, loop_callback callback,
		   void *userdata, struct loop_timer **out);
struct loop_timer *loop_timer_free(struct loop_timer *timer);

/* Calls `callback` each time the process gets the signal, until the loop is freed. */
int loop_signal_add(struct loop *loop, int signo, loop_signal_callback callback, void *userdata);

/* Returns the underlying loop of libuv, for the server's own handles. */
struct uv_loop_s *loop_uv(struct loop *loop);

#endif

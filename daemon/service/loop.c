/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <uv.h>

#include "common/base.h"

struct loop {
	uv_loop_t uv;
	struct signal_watch *signals;
};

struct loop_timer {
	uv_timer_t uv;
	loop_callback callback;
	void *userdata;
};

struct signal_watch {
	uv_signal_t uv;
	loop_signal_callback callback;
	void *userdata;
	struct signal_watch *next;
};

int loop_new(struct loop **out)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	char workers[16];
	int r;

	if (!loop)
		return -ENOMEM;
	r = uv_loop_init(&loop->uv);
	if (r < 0) {
		free(loop);
		return r;
	}
	signal(SIGPIPE, SIG_IGN);
	snprintf(workers, sizeof(workers), "%d", LOOP_WORKERS);
	setenv("UV_THREADPOOL_SIZE", workers, 1);
	*out = loop;
	return 0;
}

/* Frees the struct that contains the handle. In all such structs of this file, the handle is the
 * first member. */
static void on_handle_closed(uv_handle_t *handle)
{
	free(handle);
}

static void handle_close(void *handle)
{
	if (!uv_is_closing(handle))
		uv_close(handle, on_handle_closed);
}

struct loop *loop_free(struct loop *loop)
{
	if (!loop)
		return NULL;
	while (loop->signals) {
		struct signal_watch *watch = loop->signals;

		loop->signals = watch->next;
		handle_close(watch);
	}
	/* Run the loop until all handles are closed and all work in the pool is done. */
	while (uv_loop_alive(&loop->uv))
		uv_run(&loop->uv, UV_RUN_DEFAULT);
	uv_loop_close(&loop->uv);
	free(loop);
	return NULL;
}

void loop_freep(struct loop **loop)
{
	*loop = loop_free(*loop);
}

int loop_run(struct loop *loop)
{
	int r = uv_run(&loop->uv, UV_RUN_DEFAULT);

	return r < 0 ? r : 0;
}

void loop_stop(struct loop *loop)
{
	uv_stop(&loop->uv);
}

static void on_timer(uv_timer_t *uv)
{
	struct loop_timer *timer = (struct loop_timer *)uv;

	timer->callback(timer->userdata);
}

/*
 * Converts ns to milliseconds. Rounds up, since a repeat time of 0 would mean that the timer does
 * not repeat.
 */
static uint64_t ns_to_ms(int64_t ns)
{
	return (uint64_t)((ns + NS_PER_MS - 1) / NS_PER_MS);
}

int loop_timer_new(struct loop *loop, int64_t first_ns, int64_t repeat_ns, loop_callback callback,
		   void *userdata, struct loop_timer **out)
{
	struct loop_timer *timer;

	if (first_ns < 0 || repeat_ns < 0)
		return -EINVAL;
	timer = calloc(1, sizeof(*timer));
	if (!timer)
		return -ENOMEM;
	timer->callback = callback;
	timer->userdata = userdata;
	uv_timer_init(&loop->uv, &timer->uv);
	uv_timer_start(&timer->uv, on_timer, ns_to_ms(first_ns), ns_to_ms(repeat_ns));
	*out = timer;
	return 0;
}

struct loop_timer *loop_timer_free(struct loop_timer *timer)
{
	if (timer)
		handle_close(timer);
	return NULL;
}

static void on_signal(uv_signal_t *uv, int signo)
{
	struct signal_watch *watch = (struct signal_watch *)uv;

	watch->callback(signo, watch->userdata);
}

int loop_signal_add(struct loop *loop, int signo, loop_signal_callback callback, void *userdata)
{
	struct signal_watch *watch = calloc(1, sizeof(*watch));
	int r;

	if (!watch)
		return -ENOMEM;
	watch->callback = callback;
	watch->userdata = userdata;
	r = uv_signal_init(&loop->uv, &watch->uv);
	if (r < 0) {
		free(watch);
		return r;
	}
	r = uv_signal_start(&watch->uv, on_signal, signo);
	if (r < 0) {
		handle_close(watch);
		return r;
	}
	watch->next = loop->signals;
	loop->signals = watch;
	return 0;
}

struct uv_loop_s *loop_uv(struct loop *loop)
{
	return &loop->uv;
}

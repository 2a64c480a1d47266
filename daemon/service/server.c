/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/server.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/answer_time.h"
#include "daemon/base/log.h"
#include "daemon/service/client.h"
#include "daemon/service/loop.h"

/*
 * A sweep looks for missed deadlines SWEEPS_PER_TIMEOUT times within the shortest time limit, but
 * at intervals of at least SWEEP_MIN_MS and at most SWEEP_MAX_MS.
 */
enum { SWEEPS_PER_TIMEOUT = 8, SWEEP_MIN_MS = 10, SWEEP_MAX_MS = 1000 };

/*
 * When all clients are idle, free memory is given back to the kernel if at least this many bytes
 * were read and written since the last time.
 */
enum { TRIM_AFTER = 1024 * 1024 };

static void on_handle_closed(uv_handle_t *handle)
{
	server_put(handle->data);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	server_accept(poll->data);
}

static int listener_start(struct server *server)
{
	server->is_paused = false;
	return uv_poll_start(&server->listener, UV_READABLE, on_connection);
}

/* Gives free heap memory back to the kernel. Runs on a thread of the pool. */
static void on_trim(uv_work_t *work)
{
	struct answer_time time;

	answer_time_begin(&time);
	malloc_trim(0);
	answer_time_end(&time);
}

static void on_trimmed(uv_work_t *work, int status)
{
	struct server *server = work->data;

	server->is_trimming = false;
	server_put(server);
}

/*
 * Lets a thread of the pool give free heap memory back to the kernel. Otherwise malloc() would keep
 * it for ever, in a separate heap for each thread that has made large answers.
 */
static void memory_give_back(struct server *server)
{
	if (server->is_trimming || server->moved < TRIM_AFTER)
		return;
	for (const struct client *client = server->clients; client; client = client->next)
		if (client->state != CLIENT_IDLE)
			return;
	server->trim.data = server;
	if (uv_queue_work(server->loop, &server->trim, on_trim, on_trimmed) < 0)
		return;
	server->moved = 0;
	server->is_trimming = true;
	server->users++;
}

static void on_sweep(uv_timer_t *timer)
{
	struct server *server = timer->data;
	uint64_t now = uv_hrtime();
	struct client *next;

	if (server->is_paused)
		listener_start(server);
	for (struct client *client = server->clients; client; client = next) {
		next = client->next;
		client_sweep(client, now);
	}
	memory_give_back(server);
}

/*
 * Makes the next step of all clients that wait. Begins with the client that connected first,
 * because all may wait for something that only one can have. Returns false if none waits.
 */
static bool waiting_resume(struct server *server)
{
	struct client *client = server->clients;
	bool is_waiting = false;

	while (client && client->next)
		client = client->next;
	for (; client; client = client->prev) {
		if (client->state != CLIENT_WAITING)
			continue;
		is_waiting = true;
		client_resume(client);
	}
	return is_waiting;
}

/* Stops the timer if no client waits; client_wait() starts it again. */
static void on_tick(uv_timer_t *timer)
{
	if (!waiting_resume(timer->data))
		uv_timer_stop(timer);
}

static void on_wake(uv_async_t *wake)
{
	waiting_resume(wake->data);
}

void server_wake(struct server *server)
{
	uv_async_send(&server->wake);
}

static uint64_t sweep_interval_ms(const struct server_options *options)
{
	int64_t ns = options->message_timeout_ns;
	int64_t ms;

	if (options->write_timeout_ns < ns)
		ns = options->write_timeout_ns;
	if (options->idle_timeout_ns < ns)
		ns = options->idle_timeout_ns;
	ms = ns / SWEEPS_PER_TIMEOUT / NS_PER_MS;

	if (ms < SWEEP_MIN_MS)
		return SWEEP_MIN_MS;
	return ms > SWEEP_MAX_MS ? SWEEP_MAX_MS : (uint64_t)ms;
}

int server_new(struct loop *loop, const struct server_options *options,
	       const struct server_handler *handler, struct server **out)
{
	struct server *server;
	uint64_t interval = sweep_interval_ms(options);

	if (options->max_clients == 0 || options->max_message == 0)
		return -EINVAL;
	server = calloc(1, sizeof(*server));
	if (!server)
		return -ENOMEM;
	server->loop = loop_uv(loop);
	server->options = *options;
	server->handler = *handler;
	server->users = 3;
	server->fd = -1;
	uv_timer_init(server->loop, &server->tick);
	server->tick.data = server;
	uv_timer_start(&server->tick, on_tick, SERVER_TICK_MS, SERVER_TICK_MS);
	uv_async_init(server->loop, &server->wake, on_wake);
	server->wake.data = server;
	uv_timer_init(server->loop, &server->sweep);
	server->sweep.data = server;
	uv_timer_start(&server->sweep, on_sweep, interval, interval);
	*out = server;
	return 0;
}

/* Removes the file of this server's socket from its path, unless another daemon has put its own
 * socket there. */
static void path_remove(const struct server *server)
{
	struct stat st;

	if (!server->path || lstat(server->path, &st) < 0)
		return;
	if (st.st_dev == server->path_stat.st_dev && st.st_ino == server->path_stat.st_ino)
		unlink(server->path);
}

struct server *server_free(struct server *server)
{
	if (!server)
		return NULL;
	path_remove(server);
	while (server->clients)
		client_close(server->clients);
	if (server->fd >= 0) {
		uv_close((uv_handle_t *)&server->listener, on_handle_closed);
		close(server->fd);
	}
	uv_close((uv_handle_t *)&server->tick, on_handle_closed);
	uv_close((uv_handle_t *)&server->wake, on_handle_closed);
	uv_close((uv_handle_t *)&server->sweep, on_handle_closed);
	return NULL;
}

int server_listen_fd(struct server *server, int fd)
{
	int r;

	if (server->fd >= 0)
		return -EALREADY;
	r = server_socket_check(fd);
	if (r < 0)
		return log_err(r, "descriptor %d is not a Unix stream socket that listens", fd);
	r = uv_poll_init(server->loop, &server->listener, fd); /* also makes fd non-blocking */
	if (r < 0)
		return log_err(r, "cannot use descriptor %d", fd);
	server->listener.data = server;
	server->users++;
	server->fd = fd;
	r = listener_start(server);
	return r < 0 ? log_err(r, "cannot listen on descriptor %d", fd) : 0;
}

int server_listen(struct server *server, const char *path, const char *group)
{
	_cleanup_(closep) int fd = -1;
	int r;

	if (server->fd >= 0)
		return -EALREADY;
	r = server_socket_listen(path, group, &fd);
	if (r < 0)
		return r;
	server->path = strdup(path);
	if (!server->path || lstat(path, &server->path_stat) < 0) {
		r = server->path ? -errno : -ENOMEM;
		unlink(path);
		return log_err(r, "cannot listen on %s", path);
	}
	r = server_listen_fd(server, fd);
	if (server->fd == fd)
		fd = -1;
	return r;
}

void server_set_limits(struct server *server, size_t max_clients, int64_t idle_timeout_ns)
{
	server->options.max_clients = max_clients;
	server->options.idle_timeout_ns = idle_timeout_ns;
}

void server_stats_get(struct server *server, struct server_stats *out)
{
	struct counters *counters = &server->counters;

	*out = (struct server_stats){
		.options = server->options,
		.clients = atomic_load(&counters->clients),
		.output = atomic_load(&counters->output),
		.clients_hits = atomic_load(&counters->clients_hits),
		.dropped_uid = atomic_load(&counters->dropped_uid),
		.message_hits = atomic_load(&counters->message_hits),
		.output_hits = atomic_load(&counters->output_hits),
		.idle_timeout_hits = atomic_load(&counters->idle_timeout_hits),
		.message_timeout_hits = atomic_load(&counters->message_timeout_hits),
		.write_timeout_hits = atomic_load(&counters->write_timeout_hits),
		.shape_hits = atomic_load(&counters->shape_hits),
		.bad_messages = atomic_load(&counters->bad_messages),
		.accept_failures = atomic_load(&counters->accept_failures),
	};
}

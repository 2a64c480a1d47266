/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/answer_time.h"
#include "daemon/base/log.h"

/*
 * The calls of a client are answered one at a time. The message of a call is taken from
 * client->frame and answered in steps, by threads of the pool. The reply of a step is written
 * before the next step is made. This keeps the replies in the order of the calls, and at most one
 * reply waits for a client to read it.
 */

static void client_advance(struct client *client);

void server_put(struct server *server)
{
	server->users--;
	if (server->users > 0)
		return;
	free(server->path);
	free(server);
}

static void client_free(struct client *client)
{
	struct server *server = client->server;

	server_peer_fini(&client->peer);
	frame_fini(&client->frame);
	text_fini(&client->out);
	free(client->message);
	free(client);
	server_put(server);
}

/*
 * Frees a client if its handle is closed and no thread of the pool works for it. If a call of the
 * client is still being answered (client->exchange), a thread of the pool first ends this exchange,
 * and the client is freed after that.
 */
static void client_release(struct client *client)
{
	if (!client->is_closed || client->state == CLIENT_WORKING)
		return;
	if (client->exchange) {
		client->is_ending = true;
		client_resume(client);
		return;
	}
	client_free(client);
}

static void on_closed(uv_handle_t *handle)
{
	struct client *client = handle->data;

	client->is_closed = true;
	if (client->state == CLIENT_WRITING)
		client->state = CLIENT_IDLE;
	client_release(client);
}

static void output_done(struct client *client)
{
	atomic_fetch_sub(&client->server->counters.output, (int64_t)client->writing);
	client->writing = 0;
}

void client_close(struct client *client)
{
	struct server *server = client->server;

	if (client->is_closing)
		return;
	client->is_closing = true;
	atomic_store(&client->peer.is_gone, true);
	if (client->prev)
		client->prev->next = client->next;
	else
		server->clients = client->next;
	if (client->next)
		client->next->prev = client->prev;
	atomic_fetch_sub(&server->counters.clients, 1);
	output_done(client);
	if (client->state == CLIENT_WORKING)
		uv_cancel((uv_req_t *)&client->work); /* no effect once the work has begun */
	uv_close((uv_handle_t *)&client->pipe, on_closed);
}

static void client_end(struct client *client)
{
	if (client->exchange)
		client->server->handler.end(TAKE(client->exchange), client->is_written);
}

/* Begins to answer a call, or makes the next step of the answer. Runs on a thread of the pool. */
static void client_answer(struct client *client)
{
	const struct server_handler *handler = &client->server->handler;

	if (client->is_ending) {
		client_end(client);
		return;
	}
	if (!client->exchange) {
		client->result = handler->begin(handler->userdata, &client->peer, client->message,
						client->message_len, &client->exchange);
		free(TAKE(client->message));
		client->is_written = false;
		if (client->result < 0)
			return;
	}
	client->result = handler->step(client->exchange, &client->out);
	if (client->out.error < 0)
		client->result = client->out.error;
	if (client->result <= 0)
		client_end(client);
}

/* Runs in a thread of the pool. */
static void on_work(uv_work_t *work)
{
	struct answer_time time;

	answer_time_begin(&time);
	client_answer(work->data);
	answer_time_end(&time);
}

static void client_bad(struct client *client)
{
	atomic_fetch_add(&client->server->counters.bad_messages, 1);
	if (client->result == -EMSGSIZE)
		atomic_fetch_add(&client->server->counters.shape_hits, 1);
	log_debug("closing the connection of pid %d: %s", (int)client->peer.pid,
		  strerrordesc_np(-client->result));
	client_close(client);
}

/*
 * Puts off the client's next step until the next tick of the server's timer. Meanwhile the server
 * still reads from the client, to notice a hang-up.
 */
static void client_wait(struct client *client)
{
	uv_timer_t *tick = &client->server->tick;

	client->state = CLIENT_WAITING;
	if (!uv_is_active((uv_handle_t *)tick))
		uv_timer_again(tick); /* as server_new() has started it */
}

/*
 * Called when a step is done and its reply, if it has one, is written. Makes the next step of the
 * same call, or begins the next call.
 */
static void client_continue(struct client *client)
{
	client->state = CLIENT_IDLE;
	client->active_ns = uv_hrtime();
	/*
	 * While the server answered a call, it may have stopped reading from the client, see
	 * client_pace(). If a message is incomplete now, that is not the client's fault. So the
	 * time limit for the rest of the message begins anew.
	 */
	client->partial_ns = 0;
	text_fini(&client->out);
	if (client->result < 0)
		client_bad(client);
	else if (client->result == SERVER_WAIT)
		client_wait(client);
	else if (client->result > 0)
		client_resume(client);
	else
		client_advance(client);
}

static void on_written(uv_write_t *write, int status)
{
	struct client *client = write->data;

	/*
	 * Set is_written even if the client is being closed: the whole reply may have reached it
	 * before.
	 */
	client->is_written = status >= 0;
	if (client->is_closing)
		return; /* on_closed() will free the client */
	output_done(client);
	if (status < 0)
		client_close(client);
	else
		client_continue(client);
}

/*
 * If n more bytes of output would exceed the limit max_output, disconnects the clients that have
 * left their replies unread for longest, until the bytes fit.
 */
static void output_make_room(struct client *client, size_t n)
{
	struct server *server = client->server;

	while (atomic_load(&server->counters.output) + (int64_t)n >
	       (int64_t)server->options.max_output) {
		struct client *slowest = NULL;

		for (struct client *other = server->clients; other; other = other->next)
			if (other->state == CLIENT_WRITING &&
			    (!slowest || other->write_ns < slowest->write_ns))
				slowest = other;
		if (!slowest)
			return;
		atomic_fetch_add(&server->counters.output_hits, 1);
		client_close(slowest);
	}
}

static void client_write(struct client *client)
{
	uv_buf_t buffer = uv_buf_init(client->out.data, (unsigned)client->out.len);
	int r;

	output_make_room(client, client->out.len);
	client->state = CLIENT_WRITING;
	client->is_written = false;
	client->write_ns = uv_hrtime();
	client->writing = client->out.len;
	client->server->moved += client->out.len;
	atomic_fetch_add(&client->server->counters.output, (int64_t)client->writing);
	client->write.data = client;
	r = uv_write(&client->write, (uv_stream_t *)&client->pipe, &buffer, 1, on_written);
	if (r < 0) {
		client->state = CLIENT_IDLE;
		client_close(client);
	}
}

static void on_work_done(uv_work_t *work, int status)
{
	struct client *client = work->data;

	client->state = CLIENT_IDLE;
	if (client->is_closing)
		client_release(client);
	else if (client->out.len > 0 && client->out.error == 0)
		client_write(client);
	else
		client_continue(client);
}

void client_resume(struct client *client)
{
	int r;

	client->state = CLIENT_WORKING;
	client->work.data = client;
	r = uv_queue_work(client->server->loop, &client->work, on_work, on_work_done);
	if (r < 0) { /* uv_queue_work() fails only if an argument is wrong */
		client->state = CLIENT_IDLE;
		log_err(r, "cannot hand work to the pool");
		client_close(client);
	}
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
	struct client *client = handle->data;

	*buffer = uv_buf_init(client->server->buffer, READ_SIZE);
}

/* True if the peer has closed the connection; false if it has only stopped sending. */
static bool is_hung_up(struct client *client)
{
	struct pollfd fd = { .fd = -1 };

	uv_fileno((uv_handle_t *)&client->pipe, &fd.fd);
	return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLHUP | POLLERR)) != 0;
}

/*
 * True if a call is being answered whose client has hung up, although the server does not read from
 * the client now and thus is not notified of that.
 */
static bool is_lost(struct client *client)
{
	return (client->state == CLIENT_WORKING || client->state == CLIENT_WAITING) &&
	       !client->is_reading && is_hung_up(client);
}

static void client_read_error(struct client *client, int r)
{
	if (r == -EMSGSIZE)
		atomic_fetch_add(&client->server->counters.message_hits, 1);
	client_close(client);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
	struct client *client = stream->data;
	int r;

	if (n == 0)
		return;
	client->active_ns = uv_hrtime();
	if (n == UV_EOF && !is_hung_up(client)) {
		client->is_at_end = true;
		client->is_reading = false;
		uv_read_stop(stream);
		client_advance(client);
		return;
	}
	if (n < 0) {
		client_close(client);
		return;
	}
	client->server->moved += (size_t)n;
	r = frame_feed(&client->frame, buffer->base, (size_t)n);
	if (r < 0)
		client_read_error(client, r);
	else
		client_advance(client);
}

/*
 * Starts or stops reading from a client. While a call is being answered, the server goes on
 * reading, so that it notices a hang-up. It stops reading when more than max_message bytes of
 * further calls have arrived.
 */
static void client_pace(struct client *client)
{
	bool is_wanted = client->state == CLIENT_IDLE ||
			 frame_pending(&client->frame) <= client->server->options.max_message;

	if (client->is_at_end || is_wanted == client->is_reading)
		return;
	client->is_reading = is_wanted;
	if (!is_wanted)
		uv_read_stop((uv_stream_t *)&client->pipe);
	else if (uv_read_start((uv_stream_t *)&client->pipe, on_alloc, on_read) < 0)
		client_close(client);
}

/* Begins the next call, if none is being answered and a whole message has arrived. */
static void client_advance(struct client *client)
{
	int r = 0;

	if (client->is_closing)
		return;
	if (client->state == CLIENT_IDLE) {
		r = frame_take(&client->frame, &client->message, &client->message_len);
		if (r < 0) {
			client_read_error(client, r);
			return;
		}
		if (r > 0)
			client_resume(client);
		else if (client->is_at_end)
			client_close(client);
	}
	if (r > 0 || frame_pending(&client->frame) == 0)
		client->partial_ns = 0;
	else if (client->partial_ns == 0)
		client->partial_ns = uv_hrtime();
	if (!client->is_closing)
		client_pace(client);
}

/* Returns how long the client may take to read a reply. */
static uint64_t write_limit_ns(const struct client *client)
{
	int64_t limit_ns = client->server->options.write_timeout_ns;

	if (atomic_load(&client->peer.is_pressed) && limit_ns > SERVER_PRESSED_NS)
		limit_ns = SERVER_PRESSED_NS;
	return (uint64_t)limit_ns;
}

/* Returns the counter of the time limit that the client has exceeded; NULL if it has exceeded
 * none. */
static atomic_int_fast64_t *client_overdue(const struct client *client, uint64_t now)
{
	const struct server_options *options = &client->server->options;
	struct counters *counters = &client->server->counters;

	if (client->state == CLIENT_WRITING)
		return now - client->write_ns > write_limit_ns(client)
			       ? &counters->write_timeout_hits
			       : NULL;
	if (client->state != CLIENT_IDLE)
		return NULL;
	if (client->partial_ns != 0)
		return now - client->partial_ns > (uint64_t)options->message_timeout_ns
			       ? &counters->message_timeout_hits
			       : NULL;
	return now - client->active_ns > (uint64_t)options->idle_timeout_ns
		       ? &counters->idle_timeout_hits
		       : NULL;
}

void client_sweep(struct client *client, uint64_t now)
{
	atomic_int_fast64_t *hits = client_overdue(client, now);

	if (hits)
		atomic_fetch_add(hits, 1);
	if (hits || is_lost(client))
		client_close(client);
}

static void client_link(struct client *client)
{
	struct server *server = client->server;

	client->next = server->clients;
	if (client->next)
		client->next->prev = client;
	server->clients = client;
	atomic_fetch_add(&server->counters.clients, 1);
}

static struct client *client_new(struct server *server)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->server = server;
	server->users++;
	frame_init(&client->frame, server->options.max_message);
	text_init(&client->out, SIZE_MAX);
	client->active_ns = uv_hrtime();
	uv_pipe_init(server->loop, &client->pipe, 0);
	client->pipe.data = client;
	return client;
}

int client_open(struct server *server, int fd)
{
	struct client *client = client_new(server);
	int r;

	if (!client) {
		close(fd);
		return -ENOMEM;
	}
	client_link(client);
	r = server_peer_get(fd, &client->peer);
	if (r == 0)
		r = uv_pipe_open(&client->pipe, fd);
	if (r < 0) {
		close(fd);
		client_close(client);
		return r;
	}
	client_pace(client);
	return 0;
}

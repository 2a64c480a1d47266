/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/send/local.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/arena.h"
#include "common/base.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "proto/stacks_once.h"

/* For connecting, and for each part of an answer: others may be answered first. */
enum { CONNECT_TIMEOUT = 5, REPLY_TIMEOUT = 120 };

/* Limits of one answer. */
enum { MAX_ROWS = 1000000, MAX_WINDOWS = 1000000 };

/* Takes one reply. Returns 0 or a negative errno, which ends the call. */
typedef int (*reply_fn)(const struct varlink_message *message, struct arena *arena, void *out);

static int connect_socket(const char *path, int *fd_out)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct timeval connect_limit = { .tv_sec = CONNECT_TIMEOUT };
	const struct timeval reply_limit = { .tv_sec = REPLY_TIMEOUT };
	_cleanup_(closep) int fd = -1;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* On a Unix socket, the time limit for sending is also that of connect(). */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &connect_limit, sizeof(connect_limit)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &reply_limit, sizeof(reply_limit)) < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	*fd_out = fd;
	fd = -1;
	return 0;
}

static int send_all(int fd, const struct text *request)
{
	size_t done = 0;

	while (done < request->len) {
		ssize_t n = send(fd, request->data + done, request->len - done, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Receives the next reply, which the caller frees. */
static int receive(int fd, struct frame *frame, struct varlink_message **out)
{
	_cleanup_(freep) char *message = NULL;
	char buffer[65536];
	size_t len;
	int r;

	while ((r = frame_take(frame, &message, &len)) == 0) {
		ssize_t n = recv(fd, buffer, sizeof(buffer), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 ? -ECONNRESET : errno == EAGAIN ? -ETIMEDOUT : -errno;
		r = frame_feed(frame, buffer, (size_t)n);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : varlink_reply_parse(message, len, out);
}

/* Turns the error that the daemon sent in place of an answer into a result. */
static int refused(const struct varlink_message *message, struct arena *arena,
		   struct local_error *error)
{
	struct wire_error wire = { 0 };

	if (varlink_error_decode(message, arena, &wire) < 0)
		wire.code = wire_error_code(message->error);
	snprintf(error->text, sizeof(error->text), "the daemon says %s%s%s", message->error,
		 wire.message ? ": " : "", wire.message ? wire.message : "");
	/* A window may begin in the future after the clock was set back. */
	if (wire.code == ERROR_NO_DATA || wire.code == ERROR_UNKNOWN_PROBE ||
	    wire.code == ERROR_INVALID_TIME)
		return -ENODATA;
	return -EREMOTEIO;
}

static int exchange(const char *socket, const struct text *request, reply_fn take,
		    struct arena *arena, void *out, struct local_error *error)
{
	_cleanup_(frame_fini) struct frame frame = {};
	_cleanup_(closep) int fd = -1;
	int r;

	frame_init(&frame, VARLINK_MAX_REPLY);
	r = connect_socket(socket, &fd);
	if (r < 0)
		return r;
	r = send_all(fd, request);
	if (r < 0)
		return r;
	for (;;) {
		_cleanup_(varlink_message_freep) struct varlink_message *message = NULL;

		r = receive(fd, &frame, &message);
		if (r < 0)
			return r;
		if (message->error)
			return refused(message, arena, error);
		r = take(message, arena, out);
		if (r < 0 || !message->continues)
			return r;
	}
}

static int call(const char *socket, const struct text *request, reply_fn take, struct arena *arena,
		void *out, struct local_error *error)
{
	int r;

	error->text[0] = '\0';
	r = request->error ? request->error : exchange(socket, request, take, arena, out, error);
	if (r < 0 && !error->text[0])
		snprintf(error->text, sizeof(error->text), "%s: %s", socket, strerror(-r));
	return r == -EINVAL || r == -EMSGSIZE ? -EBADMSG : r;
}

static int take_status(const struct varlink_message *message, struct arena *arena, void *out)
{
	return status_reply_decode(message, arena, out, NULL);
}

int local_status(const char *socket, struct arena *arena, struct wire_status_reply *out,
		 struct local_error *error)
{
	_cleanup_(text_fini) struct text request = {};

	text_init(&request, SIZE_MAX);
	method_call_encode(&method_status, NULL, 0, &request);
	return call(socket, &request, take_status, arena, out, error);
}

/* Appends the windows of a reply to those of earlier ones. */
static int take_windows(const struct varlink_message *message, struct arena *arena, void *out)
{
	struct wire_windows_reply *sum = out, reply;
	struct wire_window *all;
	int r = windows_reply_decode(message, arena, &reply, NULL);

	if (r < 0)
		return r;
	if (sum->windows.n + reply.windows.n > MAX_WINDOWS)
		return -EMSGSIZE;
	all = arena_array(arena, sum->windows.n + reply.windows.n + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	if (sum->windows.n > 0)
		memcpy(all, sum->windows.v, sum->windows.n * sizeof(*all));
	if (reply.windows.n > 0)
		memcpy(all + sum->windows.n, reply.windows.v, reply.windows.n * sizeof(*all));
	sum->windows = (struct wire_windows){ all, sum->windows.n + reply.windows.n };
	sum->gaps = reply.gaps;
	return 0;
}

int local_windows(const char *socket, const char *probe, int64_t since_ns, struct arena *arena,
		  struct wire_windows_reply *out, struct local_error *error)
{
	const struct wire_windows_request windows = { .since_ns = since_ns,
						      .until_ns = WIRE_ABSENT,
						      .probe = probe };
	_cleanup_(text_fini) struct text request = {};

	*out = (struct wire_windows_reply){ 0 };
	text_init(&request, SIZE_MAX);
	windows_request_encode(&windows, VARLINK_MORE, &request);
	return call(socket, &request, take_windows, arena, out, error);
}

/* The rows of an answer, which come in several replies. */
struct rows {
	struct wire_snapshot_reply *reply;
	struct stacks_kept *kept; /* the stacks of the answer, which come once */
	struct wire_row *v;
	size_t n;
	size_t capacity; /* as many rows as the answer says that there are */
};

static int take_rows(const struct varlink_message *message, struct arena *arena, void *out)
{
	struct wire_snapshot_reply reply;
	struct rows *rows = out;
	int r = snapshot_reply_decode(message, arena, &reply, NULL);

	if (r < 0)
		return r;
	if (!rows->v) {
		if (reply.shown.rows < 0 || reply.shown.rows > MAX_ROWS)
			return -EMSGSIZE;
		*rows->reply = reply;
		rows->capacity = (size_t)reply.shown.rows;
		rows->v = arena_array(arena, rows->capacity + 1, sizeof(*rows->v));
		if (!rows->v)
			return -ENOMEM;
	}
	if (reply.rows.n > rows->capacity - rows->n)
		return -EBADMSG;
	r = stacks_kept_fill(rows->kept, arena, &reply.rows);
	if (r < 0)
		return r;
	if (reply.rows.n > 0)
		memcpy(rows->v + rows->n, reply.rows.v, reply.rows.n * sizeof(*rows->v));
	rows->n += reply.rows.n;
	rows->reply->rows = (struct wire_rows){ .v = rows->v, .n = rows->n };
	return 0;
}

int local_snapshot(const char *socket, const char *probe, int64_t since_ns, int64_t until_ns,
		   struct arena *arena, struct wire_snapshot_reply *out, struct local_error *error)
{
	struct wire_snapshot_request snapshot = wire_snapshot_request_absent();
	_cleanup_(stacks_kept_freep) struct stacks_kept *kept = stacks_kept_new(arena);
	_cleanup_(text_fini) struct text request = {};
	struct rows rows = { .reply = out, .kept = kept };
	int r;

	if (!kept)
		return -ENOMEM;
	snapshot.probe = probe;
	snapshot.since_ns = since_ns;
	snapshot.until_ns = until_ns;
	snapshot.top = 0;
	snapshot.idle = 1;
	snapshot.groups = 1;
	snapshot.stacks_once = 1;
	text_init(&request, SIZE_MAX);
	snapshot_request_encode(&snapshot, VARLINK_MORE, &request);
	r = call(socket, &request, take_rows, arena, &rows, error);
	if (r < 0)
		return r;
	return rows.n == rows.capacity ? 0 : -EBADMSG;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/proto/fixture.h"

#include <errno.h>
#include <grp.h>
#include <locale.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <uv.h>

#include "common/base.h"
#include "daemon/service/loop.h"
#include "daemon/service/service.h"

enum { PATIENCE_MS = 20000, LARGE_GROUP = 100000 };

struct fixture {
	char directory[32];
	char path[64];
	struct recorder recorder;
	struct loop *loop;
	uv_async_t stop; /* sent by the test's thread to end the loop */
	struct service *service;
	struct server *server;
	pthread_t thread;
};

/* Has every group need a large buffer, as a group with many members does. */
int __real_getgrnam_r(const char *name, struct group *group, char *buffer, size_t size,
		      struct group **out);
int __wrap_getgrnam_r(const char *name, struct group *group, char *buffer, size_t size,
		      struct group **out);

int __wrap_getgrnam_r(const char *name, struct group *group, char *buffer, size_t size,
		      struct group **out)
{
	*out = NULL;
	return size < LARGE_GROUP ? ERANGE : __real_getgrnam_r(name, group, buffer, size, out);
}

void sleep_ms(int64_t ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NS_PER_MS };

	nanosleep(&t, NULL);
}

struct server_options fixture_options(void)
{
	return (struct server_options){
		.max_clients = 64,
		.max_message = 1024 * 1024,
		.max_output = SERVER_MAX_OUTPUT,
		.idle_timeout_ns = 900 * NS_PER_S,
		.message_timeout_ns = SERVER_TIMEOUT_S * NS_PER_S,
		.write_timeout_ns = SERVER_TIMEOUT_S * NS_PER_S,
	};
}

static void on_stop(uv_async_t *stop)
{
	struct fixture *fixture = stop->data;

	loop_stop(fixture->loop);
}

static void *run(void *userdata)
{
	struct fixture *fixture = userdata;

	loop_run(fixture->loop);
	uv_close((uv_handle_t *)&fixture->stop, NULL);
	server_free(fixture->server);
	loop_free(fixture->loop);
	return NULL;
}

struct fixture *fixture_start(const struct server_options *options)
{
	struct server_options defaults = fixture_options();
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	const struct service_groups groups = { .query = "daemon", .control = "bin" };
	struct server_handler handler;

	assert_non_null(fixture);
	/*
	 * glibc's allocator is set up by its first call. With AddressSanitizer that would be one of
	 * malloc_trim() on two threads at once; both would own the main arena and abort at their
	 * end.
	 */
	malloc_trim(0);
	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	strcpy(fixture->directory, "/tmp/stackd-test-XXXXXX");
	assert_non_null(mkdtemp(fixture->directory));
	snprintf(fixture->path, sizeof(fixture->path), "%s/sock", fixture->directory);
	assert_int_equal(loop_new(&fixture->loop), 0);
	fixture->stop.data = fixture;
	assert_int_equal(uv_async_init(loop_uv(fixture->loop), &fixture->stop, on_stop), 0);
	assert_int_equal(service_new(&fixture->recorder, &groups, &fixture->service), 0);
	handler = service_handler(fixture->service);
	assert_int_equal(server_new(fixture->loop, options ? options : &defaults, &handler,
				    &fixture->server),
			 0);
	service_set_server(fixture->service, fixture->server);
	assert_int_equal(server_listen(fixture->server, fixture->path, NULL), 0);
	assert_int_equal(pthread_create(&fixture->thread, NULL, run, fixture), 0);
	return fixture;
}

struct service *fixture_service(struct fixture *fixture)
{
	return fixture->service;
}

void fixture_stop(struct fixture *fixture)
{
	int answers;

	uv_async_send(&fixture->stop);
	pthread_join(fixture->thread, NULL);
	service_free(fixture->service);
	answers = atomic_load(&fixture->recorder.answers);
	assert_int_equal(access(fixture->path, F_OK), -1);
	assert_int_equal(rmdir(fixture->directory), 0);
	free(fixture);
	assert_int_equal(answers, 0);
}

const char *fixture_path(const struct fixture *fixture)
{
	return fixture->path;
}

struct recorder *fixture_recorder(struct fixture *fixture)
{
	return &fixture->recorder;
}

struct server_stats fixture_stats(struct fixture *fixture)
{
	struct server_stats stats;

	server_stats_get(fixture->server, &stats);
	return stats;
}

void peer_connect(struct peer *peer, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*peer = (struct peer){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	assert_true(peer->fd >= 0);
	strcpy(address.sun_path, path);
	assert_int_equal(connect(peer->fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

void peer_close(struct peer *peer)
{
	close(peer->fd);
	free(peer->data);
}

void peer_send(struct peer *peer, const char *data, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(peer->fd, data, n, MSG_NOSIGNAL);

		assert_true(sent > 0);
		data += sent;
		n -= (size_t)sent;
	}
}

void peer_call(struct peer *peer, const char *json)
{
	peer_send(peer, json, strlen(json) + 1);
}

/* Reads once. Returns the number of bytes, 0 at the end, -1 if nothing arrives in time. */
static ssize_t peer_read(struct peer *peer, int ms)
{
	struct pollfd fd = { .fd = peer->fd, .events = POLLIN };
	ssize_t n;

	if (poll(&fd, 1, ms) == 0)
		return -1;
	if (peer->capacity - peer->len < 65536) {
		peer->capacity = peer->capacity * 2 + 131072;
		peer->data = realloc(peer->data, peer->capacity);
		assert_non_null(peer->data);
	}
	n = recv(peer->fd, peer->data + peer->len, peer->capacity - peer->len, 0);
	if (n < 0)
		return 0; /* a reset: the server closed with bytes unread */
	peer->len += (size_t)n;
	return n;
}

static struct json_object *json_check(const char *text, size_t len)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *object;

	/* The C library decodes, so that our own decoder is not its own judge. */
	assert_true(mbstowcs(NULL, text, 0) != (size_t)-1);
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, text, (int)len);
	assert_int_equal(json_tokener_get_error(tokener), json_tokener_success);
	assert_int_equal(json_tokener_get_parse_end(tokener), len);
	assert_true(json_object_is_type(object, json_type_object));
	json_tokener_free(tokener);
	return object;
}

struct json_object *peer_reply(struct peer *peer)
{
	struct json_object *reply;
	char *end;

	while (!peer->len || !(end = memchr(peer->data, '\0', peer->len))) {
		ssize_t n = peer_read(peer, PATIENCE_MS);

		if (n <= 0)
			fail_msg("%s", n < 0 ? "no reply in time" : "closed instead of a reply");
	}
	assert_true(end - peer->data < 1024 * 1024);
	reply = json_check(peer->data, (size_t)(end - peer->data));
	peer->len -= (size_t)(end + 1 - peer->data);
	memmove(peer->data, end + 1, peer->len);
	return reply;
}

bool peer_is_closed(struct peer *peer)
{
	ssize_t n;

	if (peer->len > 0)
		return false;
	n = peer_read(peer, PATIENCE_MS);
	return n == 0;
}

bool peer_is_silent(struct peer *peer, int ms)
{
	return peer->len == 0 && peer_read(peer, ms) == -1;
}

struct json_object *reply_get(struct json_object *reply, const char *name, const char *name2)
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(reply, name, &value))
		fail_msg("no %s in %s", name, json_object_to_json_string(reply));
	if (name2 && !json_object_object_get_ex(value, name2, &value))
		fail_msg("no %s.%s in %s", name, name2, json_object_to_json_string(reply));
	return value;
}

void reply_is_error(struct json_object *reply, enum wire_error_code error, const char *parameter,
		    const char *value)
{
	assert_string_equal(json_object_get_string(reply_get(reply, "error", NULL)),
			    wire_error_name(error));
	if (parameter)
		assert_string_equal(
			json_object_get_string(reply_get(reply, "parameters", parameter)), value);
	json_object_put(reply);
}

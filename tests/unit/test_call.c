/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/call/call.h"
#include "client/call/fetch.h"
#include "client/option/options.h"
#include "client/verb/verb.h"
#include "common/base.h"

enum { TIMEOUT_US = 1000, SILENCE_US = 50 * TIMEOUT_US, OTHER_CALL_US = 500000 };
enum { SIGNAL_US = 10000, SIGNALS_MAX = 500 };

/* A daemon that answers one call after a long silence. */
struct daemon {
	int listener;
	const char *reply; /* NULL: it waits until the client disconnects */
	const char *last;  /* a second reply; NULL: none */
	/* it answers only after this many other calls have come, which it answers at once */
	int other_calls;
	/* it sends SIGINT to this thread, again and again until the client disconnects; NULL: none
	 */
	const pthread_t *interrupted;
	bool was_left; /* the client disconnected because of these signals */
	pthread_t thread;
};

int __real_setsockopt(int fd, int level, int which, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int which, const void *value, socklen_t size);

/* Shortens the time-outs, as a minute would be too long for a test. */
int __wrap_setsockopt(int fd, int level, int which, const void *value, socklen_t size)
{
	struct timeval tv;

	assert_int_equal(size, sizeof tv);
	memcpy(&tv, value, sizeof tv);
	if (which == SO_RCVTIMEO && tv.tv_sec > 0)
		tv.tv_usec = tv.tv_sec == CALL_CONNECT_TIMEOUT ? OTHER_CALL_US : TIMEOUT_US;
	if (which == SO_RCVTIMEO)
		tv.tv_sec = 0;
	return __real_setsockopt(fd, level, which, &tv, size);
}

static void other_call_answer(const struct daemon *daemon)
{
	int fd = accept(daemon->listener, NULL, NULL);
	char byte = 1;

	while (byte != '\0' && recv(fd, &byte, 1, 0) == 1)
		;
	send(fd, "{}", 3, MSG_NOSIGNAL);
	while (recv(fd, &byte, 1, 0) == 1)
		;
	close(fd);
}

/* A signal may arrive just before the client waits, so one is not enough. */
static void interrupt(struct daemon *daemon, int fd)
{
	char byte;

	for (int i = 0; i < SIGNALS_MAX && !daemon->was_left; i++) {
		pthread_kill(*daemon->interrupted, SIGINT);
		usleep(SIGNAL_US);
		daemon->was_left = recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
	}
}

static void *serve(void *context)
{
	struct daemon *daemon = context;
	int fd = accept(daemon->listener, NULL, NULL);
	char byte = 1;

	while (byte != '\0' && recv(fd, &byte, 1, 0) == 1)
		;
	if (daemon->interrupted)
		interrupt(daemon, fd);
	else if (daemon->reply && !daemon->other_calls)
		usleep(SILENCE_US);
	for (; daemon->other_calls > 0; daemon->other_calls--)
		other_call_answer(daemon);
	if (daemon->reply) {
		send(fd, daemon->reply, strlen(daemon->reply) + 1, MSG_NOSIGNAL);
		if (daemon->last)
			send(fd, daemon->last, strlen(daemon->last) + 1, MSG_NOSIGNAL);
	}
	while (recv(fd, &byte, 1, 0) == 1)
		;
	close(fd);
	return NULL;
}

static void daemon_start(struct daemon *daemon, const char *reply, struct options *options)
{
	static struct sockaddr_un address;

	address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(address.sun_path, sizeof address.sun_path, "/tmp/test-call-%d", (int)getpid());
	daemon->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	daemon->reply = reply;
	unlink(address.sun_path);
	assert_int_equal(bind(daemon->listener, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(daemon->listener, 1), 0);
	assert_int_equal(pthread_create(&daemon->thread, NULL, serve, daemon), 0);
	options_init(options);
	options->socket = address.sun_path;
}

static void daemon_end(struct daemon *daemon, const struct options *options)
{
	pthread_join(daemon->thread, NULL);
	close(daemon->listener);
	unlink(options->socket);
}

static void test_silence_ends_a_call(void **state)
{
	struct daemon daemon = {};
	struct options options;

	daemon_start(&daemon, NULL, &options);
	assert_int_equal(cmd_status(&options), EXIT_CODE_IO);
	daemon_end(&daemon, &options);
}

/* A daemon that answers other calls is waited for, up to a limit. */
static void test_a_call_waits_for_others(void **state)
{
	struct daemon daemon = { .other_calls = 3 };
	struct options options;

	daemon_start(&daemon,
		     "{\"error\":\"io.stackd.UnknownSession\",\"parameters\":"
		     "{\"session\":\"s1\",\"message\":\"session s1 has ended\"}}",
		     &options);
	assert_int_equal(cmd_status(&options), EXIT_CODE_USAGE);
	daemon_end(&daemon, &options);

	daemon = (struct daemon){ .other_calls = CALL_PATIENCE / CALL_REPLY_TIMEOUT - 1 };
	daemon_start(&daemon, NULL, &options);
	assert_int_equal(cmd_status(&options), EXIT_CODE_IO);
	daemon_end(&daemon, &options);
	assert_int_equal(daemon.other_calls, 0);
}

/* A stream may be silent for long: the code is that of the daemon's error, not of a time-out. */
static void test_silence_is_no_end_of_watch(void **state)
{
	struct daemon daemon = {};
	struct options options;

	daemon_start(&daemon,
		     "{\"error\":\"io.stackd.UnknownSession\",\"parameters\":"
		     "{\"session\":\"s1\",\"message\":\"session s1 has ended\"}}",
		     &options);
	options.argument = "s1";
	assert_int_equal(cmd_watch(&options), EXIT_CODE_USAGE);
	daemon_end(&daemon, &options);
}

/* Follows with a patience that no test exhausts. */
static enum exit_code follow(const struct options *options, const struct text *request,
			     reply_handler handler, void *context)
{
	return call_follow(options, request, 600, handler, context);
}

static int reply_refuse(const struct varlink_message *message, void *context)
{
	return -EPROTO;
}

/* SIGINT ends a wait for an answer, after which the program goes on to print what it has. */
static void test_a_signal_ends_a_wait(void **state)
{
	enum exit_code (*const calls[])(const struct options *, const struct text *, reply_handler,
					void *) = { call_run, follow };
	const pthread_t self = pthread_self();

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		struct daemon daemon = { .interrupted = &self };
		struct text request;
		struct options options;

		text_init(&request, 16);
		text_put(&request, "{}", 3);
		daemon_start(&daemon, "{\"parameters\":{}}", &options);
		call_catch_signals();
		assert_int_equal(calls[i](&options, &request, reply_refuse, NULL), EXIT_CODE_OK);
		daemon_end(&daemon, &options);
		assert_true(daemon.was_left);
		assert_true(call_was_interrupted());
		call_release_signals();
		text_fini(&request);
	}
}

/* So does a signal that comes while it connects, without a message about a failure. */
static void test_a_signal_ends_a_connection(void **state)
{
	char *message = NULL;
	struct options options;
	struct text request;

	text_init(&request, 16);
	text_put(&request, "{}", 3);
	options_init(&options);
	options.socket = "/nonexistent/socket";
	call_catch_signals();
	raise(SIGTERM);
	assert_int_equal(call_quiet(&options, &request, reply_refuse, NULL, &message),
			 EXIT_CODE_OK);
	assert_null(message);
	call_release_signals();
	assert_int_equal(call_quiet(&options, &request, reply_refuse, NULL, &message),
			 EXIT_CODE_NO_DAEMON);
	assert_non_null(message);
	free(message);
	text_fini(&request);
}

#define TIME(ns) "{\"ns\":" #ns ",\"text\":\"\"}"
#define WINDOW(seq)                                                \
	"{\"seq\":" #seq ",\"start\":" TIME(seq) ",\"end\":" TIME( \
		seq) ",\"length_ns\":5,"                           \
		     "\"rows\":10" #seq ",\"threads\":2,\"open\":3,\"bytes\":4,\"lost\":[]}"

/* The windows of all replies are there, in their order. */
static void test_windows_of_several_replies(void **state)
{
	struct daemon daemon = {
		.other_calls = 1,
		.last = "{\"parameters\":{\"windows\":[" WINDOW(3) "],\"gaps\":[]}}",
	};
	struct wire_windows_request request = { .since_ns = WIRE_ABSENT, .until_ns = WIRE_ABSENT };
	struct wire_windows_reply reply;
	struct arena *arena = arena_new();
	struct options options;

	daemon_start(&daemon,
		     "{\"continues\":true,\"parameters\":{\"windows\":[" WINDOW(1) "," WINDOW(
			     2) "],\"gaps\":[]}}",
		     &options);
	assert_int_equal(fetch_windows(&options, &request, arena, &reply), EXIT_CODE_OK);
	daemon_end(&daemon, &options);
	assert_int_equal(reply.windows.n, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(reply.windows.v[i].seq, 1 + i);
		assert_int_equal(reply.windows.v[i].rows, 101 + i);
	}
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silence_ends_a_call),
		cmocka_unit_test(test_a_call_waits_for_others),
		cmocka_unit_test(test_silence_is_no_end_of_watch),
		cmocka_unit_test(test_a_signal_ends_a_wait),
		cmocka_unit_test(test_a_signal_ends_a_connection),
		cmocka_unit_test(test_windows_of_several_replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

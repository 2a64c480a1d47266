/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/call.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/base/local_times.h"
#include "client/base/message.h"
#include "client/base/term.h"
#include "client/option/options.h"
#include "client/option/suggest.h"
#include "common/base.h"
#include "common/probe_kind.h"
#include "proto/frame.h"

static volatile sig_atomic_t is_interrupted;

/* Everything that a call needs except its request. */
struct call {
	const char *path;
	time_t reply_timeout; /* how long to wait for a reply, in seconds; 0: for ever */
	bool is_stream;	      /* true: the call ends when nobody reads standard output any more */
	/*
	 * If a stream has no reply_timeout: how many seconds to wait for a reply before saying
	 * whether the daemon is there.
	 */
	time_t patience;
	/* Receives an error that the daemon sends; NULL: the error is printed instead. */
	struct call_error *error;
	char **message_out; /* receives what went wrong; NULL: it is printed */
	reply_handler handler;
	void *context;
};

static void on_signal(int signo)
{
	if (!is_interrupted)
		alarm(CALL_LEAVE_TIMEOUT);
	is_interrupted = signo;
}

/* Ends the program as the signal would have done: it still waits, for a reader of its output. */
static void on_alarm(int signo)
{
	signal(is_interrupted, SIG_DFL);
	raise(is_interrupted);
}

/* Installs the handlers without SA_RESTART, so that a signal makes recv() return. */
void call_catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGALRM, on_alarm);
}

void call_release_signals(void)
{
	alarm(0);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	is_interrupted = 0;
}

bool call_was_interrupted(void)
{
	return is_interrupted != 0;
}

/* Returns the path of the socket: the value of -S, else $STACKD_SOCKET, else the default. */
static const char *socket_path(const struct options *options)
{
	const char *path = options->socket  ? options->socket
			   : options->fleet ? FLEET_SOCKET_DEFAULT
					    : getenv("STACKD_SOCKET");

	return path && path[0] != '\0' ? path : SOCKET_DEFAULT;
}

static int set_timeout(int fd, int which, time_t seconds)
{
	struct timeval tv = { .tv_sec = seconds };

	return setsockopt(fd, SOL_SOCKET, which, &tv, sizeof tv) < 0 ? -errno : 0;
}

static int connect_socket(const char *path, time_t reply_timeout, int *fd_out)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_(closep) int fd = -1;
	int r;

	if (strlen(path) >= sizeof address.sun_path)
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* On a Unix socket, the send time-out also limits connect(). */
	r = set_timeout(fd, SO_SNDTIMEO, CALL_CONNECT_TIMEOUT);
	if (r < 0)
		return r;
	r = set_timeout(fd, SO_RCVTIMEO, reply_timeout);
	if (r < 0)
		return r;
	if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
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

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		done += (size_t)n;
	}
	return 0;
}

/*
 * Waits for bytes from the daemon. Returns 0; 1 if the program that reads standard output, such as
 * head, has exited; or a negative errno. Without the check of standard output, a call would last
 * until its next write failed, which may be hours later.
 */
static int wait_for_bytes(const struct call *call, int fd)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN }, { .fd = STDOUT_FILENO } };
	time_t seconds = call->reply_timeout ? call->reply_timeout : call->patience;

	/* A signal may come just before poll(), which would not return then: look once a second. */
	for (time_t waited = 0; !is_interrupted; waited++) {
		int n;

		if (seconds && waited == seconds)
			return -ETIMEDOUT;
		n = poll(fds, ARRAY_SIZE(fds), 1000);
		if (n < 0)
			return -errno;
		if (n > 0)
			return fds[1].revents & (POLLERR | POLLHUP) ? 1 : 0;
	}
	return -EINTR;
}

/* True if the daemon answers a call on another connection. */
static bool is_answering(const char *path)
{
	static const char info[] = "{\"method\":\"org.varlink.service.GetInfo\"}";
	_cleanup_(closep) int fd = -1;
	char byte;

	return connect_socket(path, CALL_CONNECT_TIMEOUT, &fd) == 0 &&
	       send(fd, info, sizeof info, MSG_NOSIGNAL) == sizeof info &&
	       recv(fd, &byte, 1, 0) == 1;
}

enum silence { SILENCE_SHORT, SILENCE_OF_THREADS, SILENCE_OF_DAEMON };

/*
 * Says, on standard error, why a stream has no reply: a daemon that hangs looks like one that has
 * nothing to say. Says it once for each silence and reason. `said` is the reason that was said
 * last.
 */
static void say_silence(const struct call *call, enum silence *said)
{
	enum silence now = is_answering(call->path) ? SILENCE_OF_THREADS : SILENCE_OF_DAEMON;

	if (now == *said || is_interrupted)
		return;
	if (now == SILENCE_OF_DAEMON)
		print_message("the daemon has not answered for %lld s, nor another call; waiting, "
			      "Ctrl-C ends",
			      (long long)call->patience);
	else
		print_message("no answer for %lld s: no thread did what is asked for; the daemon "
			      "is there",
			      (long long)call->patience);
	*said = now;
}

/*
 * Receives the next reply and stores it in *out; the caller owns it. Returns 0; 1 if nobody reads
 * standard output any more; or a negative errno.
 */
static int receive(const struct call *call, int fd, struct frame *frame,
		   struct varlink_message **out)
{
	_cleanup_(freep) char *message = NULL;
	enum silence said = SILENCE_SHORT;
	char buffer[65536];
	time_t waited = 0;
	size_t len;
	int r;

	while ((r = frame_take(frame, &message, &len)) == 0) {
		ssize_t n;

		r = call->is_stream ? wait_for_bytes(call, fd) : 0;
		if (r == -EINTR && !is_interrupted)
			continue;
		if (r == -ETIMEDOUT && call->patience) {
			say_silence(call, &said);
			continue;
		}
		if (r != 0)
			return r;
		n = recv(fd, buffer, sizeof buffer, 0);
		if (n < 0 && errno == EINTR && !is_interrupted)
			continue;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0) {
			waited += call->reply_timeout;
			if (waited >= CALL_PATIENCE || !is_answering(call->path))
				return -ETIMEDOUT;
			continue;
		}
		if (n == 0)
			return -ECONNRESET;
		r = frame_feed(frame, buffer, (size_t)n);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : varlink_reply_parse(message, len, out);
}

static void report(const struct call *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints what went wrong, or stores it if the caller wants it. */
static void report(const struct call *call, const char *format, ...)
{
	_cleanup_(freep) char *text = NULL;
	va_list ap;

	va_start(ap, format);
	text = must_format(format, ap);
	va_end(ap);
	if (call->message_out)
		*call->message_out = TAKE(text);
	else
		print_message("%s", text);
}

static char *make_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *make_text(const char *format, ...)
{
	char *text;
	va_list ap;

	va_start(ap, format);
	text = must_format(format, ap);
	va_end(ap);
	return text;
}

/* Returns a message that names the group whose members may use the socket. The caller frees it. */
static char *refused_text(const char *path)
{
	struct group *group;
	struct stat st;

	if (stat(path, &st) < 0)
		return make_text(
			"not allowed to reach %s; be root, or in the group of that directory",
			path);
	group = getgrgid(st.st_gid);
	if (group)
		return make_text("not allowed to use %s, which is for the group %s; be root, or: "
				 "adduser USER %s, and log in again",
				 path, group->gr_name, group->gr_name);
	return make_text("not allowed to use %s, which is for the group %ld; be root, or in it",
			 path, (long)st.st_gid);
}

static enum exit_code report_connect(const struct call *call, int r)
{
	const char *path = call->path;
	enum exit_code code = exit_code_of_errno(r);
	_cleanup_(freep) char *refused = NULL;

	if (code == EXIT_CODE_NO_DAEMON && strcmp(path, FLEET_SOCKET_DEFAULT) == 0)
		report(call,
		       "no gateway of a fleet at %s: %s; start it: stackd-fleet serve, or say "
		       "where it listens: -S SOCKET",
		       path, strerror(-r));
	else if (code == EXIT_CODE_NO_DAEMON)
		report(call,
		       "no daemon at %s: %s; start it: systemctl start stackd, or say where it "
		       "listens: -S SOCKET",
		       path, strerror(-r));
	else if (code == EXIT_CODE_REFUSED)
		report(call, "%s", refused = refused_text(path));
	else if (r == -ENAMETOOLONG)
		report(call, "%s: too long for a socket; up to %zu bytes", path,
		       sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	else if (r == -ETIMEDOUT)
		report(call,
		       "%s: the daemon accepted no connection for %d s; see systemctl status stackd",
		       path, CALL_CONNECT_TIMEOUT);
	else
		report(call, "%s: %s", path, strerror(-r));
	return code;
}

static enum exit_code report_exchange(const struct call *call, int r)
{
	const char *path = call->path;

	if (r == -ETIMEDOUT)
		report(call, "%s: no answer for more than %lld s; see systemctl status stackd",
		       path, (long long)call->reply_timeout);
	else if (r == -ECONNRESET || r == -EPIPE)
		report(call, "%s: the daemon closed the connection", path);
	else if (r == -EBADMSG || r == -EMSGSIZE || r == -EINVAL)
		report(call,
		       "%s: stackctl does not understand the answer; is the daemon of another version?",
		       path);
	else
		report(call, "%s: %s", path, strerror(-r));
	return EXIT_CODE_IO;
}

/* Returns the option that set a member of a request; NULL if none is known. */
static const char *option_of(const struct wire_error *error)
{
	static const struct {
		const char *member, *option;
	} options[] = {
		{ "interval_ns", "--interval" },
		{ "period_ns", "--count" },
		{ "frequency", "--frequency" },
		{ "each_ns", "--each" },
		{ "ranges", "--range" },
		{ "rate", "--rate" },
		{ "functions", "--function" },
		{ "not_functions", "--not-function" },
		{ "callers", "--callers" },
		{ "not_states", "--not-state" },
		{ "not_reasons", "--not-reason" },
		{ "hosts", "--host" },
		{ "comms", "--comm" },
		{ "cgroups", "--cgroup" },
		{ "units", "--unit" },
		{ "states", "--state" },
		{ "reasons", "--reason" },
	};
	bool is_of_value = error->code == ERROR_INVALID_TIME || error->code == ERROR_INVALID_FILTER;

	for (size_t i = 0; error->what && is_of_value && i < ARRAY_SIZE(options); i++)
		if (strcmp(options[i].member, error->what) == 0)
			return options[i].option;
	return NULL;
}

/*
 * Returns what the word may stand for that is no session, to be put behind a message: a probe that
 * is spelt almost so, or a process. The caller frees it.
 */
static char *session_hint(const char *word)
{
	struct suggestion near;
	enum probe_kind kind;

	if (word[0] && strspn(word, "0123456789") == strlen(word))
		return make_text("; a process is: stackctl snapshot offcpu -p %s", word);
	suggestion_init(&near, word, strlen(word));
	for (kind = 0; kind < PROBE_KIND_N; kind++)
		suggestion_try(&near, probe_kind_name(kind));
	if (near.best)
		return make_text("; did you mean the probe %s?", near.best);
	return make_text("; stackctl help lists the probes");
}

static char *error_text(const char *path, const char *name, const struct wire_error *error)
{
	bool is_denied = error->code == ERROR_PERMISSION_DENIED;
	const char *option = option_of(error);
	_cleanup_(freep) char *message = NULL, *hint = NULL;

	if (is_denied && error->what && strcmp(error->what, "root") == 0)
		return make_text("not allowed by the daemon at %s: only root may do this or, to a "
				 "session, its owner (see stackctl sessions)",
				 path);
	if (is_denied && error->what)
		return make_text(
			"not allowed by the daemon at %s; be root, or: adduser USER %s, and "
			"log in again",
			path, error->what);
	if (is_denied)
		return refused_text(path);
	if (error->message && error->message[0] != '\0') {
		message = local_times(error->message, clock_ns(CLOCK_REALTIME));
		/* A session that has ended is known. */
		hint = error->code == ERROR_UNKNOWN_SESSION && error->what &&
				       strncmp(error->message, "no session ",
					       strlen("no session ")) == 0
			       ? session_hint(error->what)
			       : NULL;
		return make_text("%s%s%s%s", option ? option : "", option ? ": " : "", message,
				 hint ? hint : "");
	}
	if (error->what)
		return make_text("the daemon says %s: %s", name, error->what);
	return make_text("the daemon says %s", name);
}

static enum exit_code take_error(const struct call *call, const struct varlink_message *message)
{
	_cleanup_(arena_freep) struct arena *arena = arena_new();
	struct wire_error error = { 0 };
	_cleanup_(freep) char *text = NULL;

	if (!arena || varlink_error_decode(message, arena, &error) < 0)
		error = (struct wire_error){ .code = wire_error_code(message->error) };
	text = error_text(call->path, message->error, &error);
	if (!call->error)
		report(call, "%s", text);
	else
		call->error->text = TAKE(text);
	return exit_code_of_error(error.code);
}

static enum exit_code exchange(const struct call *call, int fd, const struct text *request)
{
	_cleanup_(frame_fini) struct frame frame = {};
	bool continues;
	int r;

	frame_init(&frame, VARLINK_MAX_REPLY);
	r = send_all(fd, request);
	if (r < 0)
		return report_exchange(call, r);
	do {
		_cleanup_(varlink_message_freep) struct varlink_message *message = NULL;

		r = receive(call, fd, &frame, &message);
		if (is_interrupted)
			return EXIT_CODE_OK;
		if (r > 0)
			return EXIT_CODE_IO;
		if (r < 0)
			return report_exchange(call, r);
		if (message->error)
			return take_error(call, message);
		r = call->handler(message, call->context);
		if (r == -EIO)
			return EXIT_CODE_IO;
		if (r < 0)
			return report_exchange(call, r);
		continues = message->continues;
	} while (continues && !is_interrupted);
	return EXIT_CODE_OK;
}

static enum exit_code call_make(const struct call *call, const struct text *request)
{
	_cleanup_(closep) int fd = -1;
	int r;

	if (request->error < 0) {
		report(call, "cannot write the request: %s", strerror(-request->error));
		return EXIT_CODE_IO;
	}
	r = connect_socket(call->path, call->reply_timeout, &fd);
	if (is_interrupted)
		return EXIT_CODE_OK;
	if (r < 0)
		return report_connect(call, r);
	return exchange(call, fd, request);
}

enum exit_code call_run(const struct options *options, const struct text *request,
			reply_handler handler, void *context)
{
	const struct call call = {
		.path = socket_path(options),
		.reply_timeout = CALL_REPLY_TIMEOUT,
		.handler = handler,
		.context = context,
	};

	return call_make(&call, request);
}

enum exit_code call_try(const struct options *options, const struct text *request,
			reply_handler handler, void *context, struct call_error *error)
{
	const struct call call = {
		.path = socket_path(options),
		.reply_timeout = CALL_REPLY_TIMEOUT,
		.error = error,
		.handler = handler,
		.context = context,
	};

	return call_make(&call, request);
}

enum exit_code call_quiet(const struct options *options, const struct text *request,
			  reply_handler handler, void *context, char **message_out)
{
	const struct call call = {
		.path = socket_path(options),
		.reply_timeout = CALL_REPLY_TIMEOUT,
		.message_out = message_out,
		.handler = handler,
		.context = context,
	};

	return call_make(&call, request);
}

enum exit_code call_start(const struct options *options, const struct text *request, bool is_stream,
			  reply_handler handler, void *context)
{
	const struct call call = {
		.path = socket_path(options),
		.reply_timeout = CALL_START_TIMEOUT,
		.is_stream = is_stream,
		.handler = handler,
		.context = context,
	};

	return call_make(&call, request);
}

bool call_is_answered(const struct options *options)
{
	return is_answering(socket_path(options));
}

enum exit_code call_follow(const struct options *options, const struct text *request,
			   time_t patience, reply_handler handler, void *context)
{
	const struct call call = {
		.path = socket_path(options),
		.is_stream = true,
		.patience = patience,
		.handler = handler,
		.context = context,
	};

	return call_make(&call, request);
}

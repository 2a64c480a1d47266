/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/debuginfod/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef HAVE_DEBUGINFOD
#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#endif

#include "client/base/term.h"
#include "common/array.h"
#include "common/base.h"
#include "common/utf8.h"

/*
 * A message from the child: this struct and size bytes of text, which is the name of a function or,
 * if query is LAST_MESSAGE, what went wrong; no text if nothing did.
 */
struct message {
	uint32_t query;
	uint32_t size;
	uint64_t start;
};

enum {
	LAST_MESSAGE = UINT32_MAX,
	/* A child that does not die is left alone after this time: its file system may hang. */
	REAP_STEP_MS = 10,
	REAP_STEPS = 20,
	/*
	 * The child gives up this much before it is killed, or a LEAVE_PART of the time that is
	 * left if that is less, so that it can remove the file that it was writing.
	 */
	LEAVE_MS = 1000,
	LEAVE_PART = 4,
};

/* Limit of the address space of the child in bytes. */
#define MEMORY_MAX (UINT64_C(4) << 30)

#ifdef HAVE_DEBUGINFOD

/* The functions of libdebuginfod that are used; begin is NULL until the library is loaded. */
static struct {
	__typeof__(debuginfod_begin) *begin;
	__typeof__(debuginfod_end) *end;
	__typeof__(debuginfod_find_debuginfo) *find_debuginfo;
	__typeof__(debuginfod_set_progressfn) *set_progressfn;
} library;

/* When the child gives up, of CLOCK_MONOTONIC. */
static int64_t leave_ns;

const char *fetch_check(void)
{
	void *handle;

	if (library.begin)
		return NULL;
	handle = dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return "--debuginfod needs libdebuginfod, which is not installed (" DEBUGINFOD_SONAME
		       ")";
	library.end = (__typeof__(library.end))dlsym(handle, "debuginfod_end");
	library.find_debuginfo =
		(__typeof__(library.find_debuginfo))dlsym(handle, "debuginfod_find_debuginfo");
	library.set_progressfn =
		(__typeof__(library.set_progressfn))dlsym(handle, "debuginfod_set_progressfn");
	library.begin = (__typeof__(library.begin))dlsym(handle, "debuginfod_begin");
	if (library.end && library.find_debuginfo && library.set_progressfn && library.begin)
		return NULL;
	library.begin = NULL;
	return DEBUGINFOD_SONAME " lacks functions that --debuginfod needs";
}

static int64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Called about once a second while a file is fetched. Returns 1 to give up, else 0. */
static int on_progress(debuginfod_client *client, long done, long all)
{
	return now_ns() >= leave_ns;
}

static void send_message(int fd, uint32_t query, uint64_t start, const char *text)
{
	char buffer[sizeof(struct message) + FUNCTION_NAME_MAX];
	size_t n = strnlen(text, FUNCTION_NAME_MAX);
	const struct message message = { query, (uint32_t)n, start };

	memcpy(buffer, &message, sizeof(message));
	memcpy(buffer + sizeof(message), text, n);
	/* Without the last message, the parent knows that reading failed. */
	if (write(fd, buffer, sizeof(message) + n) < 0)
		_exit(1);
}

static const char *fetch_error(int r)
{
	if (r == -ENOENT)
		return "no server has it";
	if (r == -ETIME || r == -ETIMEDOUT)
		return "the server was too slow; see DEBUGINFOD_TIMEOUT in debuginfod_find_debuginfo(3)";
	return strerror(-r);
}

/* Fetches the file and writes messages to the parent. Runs in the child. */
static void child_run(struct fetch_file *file, int out)
{
	debuginfod_client *client = library.begin();
	const char *why = NULL;
	int fd, r;

	if (!client) {
		send_message(out, LAST_MESSAGE, 0, "libdebuginfod cannot be used");
		return;
	}
	/* The library's own progress, if the user asks for it, takes the same place. */
	if (!getenv("DEBUGINFOD_PROGRESS"))
		library.set_progressfn(client, on_progress);
	fd = library.find_debuginfo(client, file->build_id, (int)file->build_id_size, NULL);
	if (fd < 0) {
		send_message(out, LAST_MESSAGE, 0, fetch_error(fd));
		return;
	}
	r = symbols_find(fd, file->build_id, file->build_id_size, file->queries, file->n_queries,
			 &why);
	for (size_t i = 0; i < file->n_queries && r == 0; i++)
		if (file->queries[i].name)
			send_message(out, (uint32_t)i, file->queries[i].start,
				     file->queries[i].name);
	if (r == -EBADMSG && why) {
		_cleanup_(freep) char *text = NULL;

		if (asprintf(&text, "the file that was fetched %s", why) < 0)
			text = NULL;
		send_message(out, LAST_MESSAGE, 0, text ? text : why);
		return;
	}
	send_message(out, LAST_MESSAGE, 0, r < 0 ? strerror(-r) : "");
	library.end(client);
}

static void child_limit(int64_t deadline_ns)
{
	int64_t left_s = (deadline_ns - now_ns()) / NS_PER_S + 2;
	const struct rlimit cpu = { (rlim_t)left_s, (rlim_t)left_s };
	const struct rlimit memory __attribute__((unused)) = { MEMORY_MAX, MEMORY_MAX };
	const struct rlimit none = { 0, 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CPU, &cpu);
#ifndef __SANITIZE_ADDRESS__ /* not with AddressSanitizer, which maps terabytes of addresses */
	setrlimit(RLIMIT_AS, &memory);
#endif
	setrlimit(RLIMIT_CORE, &none);
}

/* Makes the child. Sets *in_out to the descriptor from which its messages come. */
static int child_start(struct fetch_file *file, int64_t deadline_ns, pid_t *pid_out, int *in_out)
{
	int64_t leave = (deadline_ns - now_ns()) / LEAVE_PART;
	int ends[2];
	pid_t pid;

	leave_ns = deadline_ns - (leave < LEAVE_MS * NS_PER_MS ? leave : LEAVE_MS * NS_PER_MS);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		int r = -errno;

		close(ends[0]);
		close(ends[1]);
		return r;
	}
	if (pid == 0) {
		close(ends[0]);
		child_limit(deadline_ns);
		child_run(file, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	*pid_out = pid;
	*in_out = ends[0];
	return 0;
}

/* Makes a name valid UTF-8: puts ? in place of each byte that is not. */
static void text_clean(char *text)
{
	size_t n;

	for (; *text; text += n) {
		n = utf8_length(text);
		if (n > 0)
			continue;
		*text = '?';
		n = 1;
	}
}

/* Waits for the child, which has ended or was killed, but not for long. Returns its status. */
static int child_reap(pid_t pid)
{
	int status = 0;

	for (int i = 0; i < REAP_STEPS; i++) {
		if (waitpid(pid, &status, WNOHANG) != 0)
			break;
		poll(NULL, 0, REAP_STEP_MS);
	}
	return status;
}

/* The messages that the child has written so far. */
struct received {
	char *data;
	size_t n, capacity;
};

/* Reads until the child closes its end. Returns 0, -ETIMEDOUT, -EINTR or another errno. */
static int receive_all(int in, int64_t deadline_ns, size_t max, struct received *received)
{
	for (;;) {
		struct pollfd fd = { .fd = in, .events = POLLIN };
		int64_t left_ns = deadline_ns - now_ns();
		ssize_t got;
		int r;

		if (left_ns <= 0)
			return -ETIMEDOUT;
		left_ns = left_ns / NS_PER_MS + 1;
		r = poll(&fd, 1, left_ns < INT_MAX ? (int)left_ns : INT_MAX);
		if (r < 0)
			return -errno;
		if (r == 0)
			continue;
		if (received->n >= max)
			return -EMSGSIZE;
		if (array_reserve(received->data, received->capacity, received->n + PIPE_BUF) < 0)
			return -ENOMEM;
		got = read(in, received->data + received->n, PIPE_BUF);
		if (got < 0)
			return -errno;
		if (got == 0)
			return 0;
		received->n += (size_t)got;
	}
}

/*
 * Takes the names from the child's messages. Returns 0; -EPROTO if they are not whole; or -EBADMSG
 * with *why_out.
 */
static int messages_take(struct fetch_file *file, const struct received *received, char **why_out)
{
	size_t at = 0;

	while (received->n - at >= sizeof(struct message)) {
		struct symbol_query *query;
		struct message message;
		const char *text;

		memcpy(&message, received->data + at, sizeof(message));
		at += sizeof(message);
		text = received->data + at;
		if (message.size > FUNCTION_NAME_MAX || message.size > received->n - at)
			return -EPROTO;
		at += message.size;
		if (message.query == LAST_MESSAGE) {
			if (message.size == 0)
				return 0;
			*why_out = must(strndup(text, message.size));
			return -EBADMSG;
		}
		if (message.query >= file->n_queries || message.size == 0)
			return -EPROTO;
		query = &file->queries[message.query];
		if (query->name || message.start > query->address)
			return -EPROTO;
		query->name = must(strndup(text, message.size));
		text_clean(query->name);
		query->start = message.start;
	}
	return -EPROTO;
}

int fetch_functions(struct fetch_file *file, int64_t deadline_ns, char **why_out)
{
	struct received received = { 0 };
	int in = -1, r, status;
	pid_t pid = 0;

	*why_out = NULL;
	r = child_start(file, deadline_ns, &pid, &in);
	if (r < 0) {
		*why_out = must(strdup(strerror(-r)));
		return r;
	}
	r = receive_all(in, deadline_ns,
			(file->n_queries + 1) * (sizeof(struct message) + FUNCTION_NAME_MAX) +
				PIPE_BUF,
			&received);
	close(in);
	if (r < 0)
		kill(pid, SIGKILL);
	status = child_reap(pid);
	if (r == 0)
		r = messages_take(file, &received, why_out);
	/* The child gave up because time is up. */
	if (r == -EBADMSG && now_ns() >= leave_ns)
		r = -ETIMEDOUT;
	if (r == -EPROTO && asprintf(why_out, "reading what was fetched failed%s%s",
				     WIFSIGNALED(status) ? ": " : "",
				     WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "") < 0)
		*why_out = must(NULL);
	else if (r < 0 && r != -ETIMEDOUT && r != -EINTR && !*why_out)
		*why_out = must(strdup(strerror(-r)));
	free(received.data);
	return r;
}

#else

const char *fetch_check(void)
{
	return "this stackctl was built without libdebuginfod, which --debuginfod needs";
}

int fetch_functions(struct fetch_file *file, int64_t deadline_ns, char **why_out)
{
	*why_out = must(strdup("built without libdebuginfod"));
	return -ENOTSUP;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/parse/parser.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/host/fd_message.h"
#include "daemon/host/helper_process.h"
#include "daemon/host/procfs.h"

/*
 * CPU time for a request. The largest program that distributions ship takes a second, and urgent
 * requests are about small files. The deadline is longer, because the CPUs may be busy.
 */
#define CPU_MS	       UINT64_C(10000)
#define CPU_URGENT_MS  UINT64_C(3000)
#define DEADLINE_TIMES 2
#define DEADLINE_MS    UINT64_C(2000)

/*
 * A file whose worker waited for a CPU nearly all the time until the deadline is not to blame, and
 * is tried again after this time.
 */
#define STARVED_NS (60 * NS_PER_S)

/* A worker that has used this much CPU time is replaced before the kernel ends it. */
#define WORKER_CPU_NS	(60 * NS_PER_S)
#define WORKER_IDLE_NS	(10 * NS_PER_S)
#define ZYGOTE_RETRY_NS NS_PER_S
#define ZYGOTE_END_NS	(2 * NS_PER_S)
#define CONTROL_S	10 /* time that the zygote may take to answer, in seconds */

/*
 * The files of an owner may take PARSER_OWNER_NS at once, and on average 1 / OWNER_SHARE of a CPU.
 * Above that they wait, so that files of other owners do not.
 */
#define OWNER_SHARE    4
#define OWNER_IS_GROUP (UINT64_C(1) << 63)

enum { OWNERS_MAX = 64 };

/* useradd gives each user this many subordinate user ids, for containers, from SUBUIDS_FROM on. */
enum { SUBUIDS_FROM = 100000, SUBUIDS = 65536 };

/*
 * The first workers answer urgent requests, the next ones demangle names, for which windows wait,
 * and the last ones answer all others.
 */
enum { WORKERS_URGENT = 2, WORKERS_NAMES = 2, WORKERS_OTHER = 4 };
enum { WORKERS = WORKERS_URGENT + WORKERS_NAMES + WORKERS_OTHER };

enum { FAILURES_MAX = 256, ZYGOTES_LEFT_MAX = 4 };

struct worker {
	int fd; /* -1: the worker is not running */
	pid_t pid;
	pid_t zygote; /* which started it, and with which it ends */
	bool is_busy;
	uint64_t dev;
	uid_t owner;
	uint64_t cpu_ns;
	int64_t used_ns;
};

/* The CPU time for files of one user, or of root in one control group. */
struct owner {
	uint64_t key;	 /* see parser_owner_key(); 0: the place is free */
	int64_t debt_ns; /* CPU time used, without what the user's share has paid since */
	int64_t paid_ns; /* time of CLOCK_MONOTONIC up to which the share is paid */
	bool is_waiting; /* the last request had to wait */
};

/* A file that was given up, in one state. */
struct failure {
	struct file_state state;
	uint32_t kind;
	int error;
	int64_t until_ns; /* time of CLOCK_MONOTONIC at which it is tried again; 0: never */
	struct parser_failure said;
};

struct parser {
	/*
	 * Held while the zygote is started, asked or ended, which may take seconds; taken before
	 * `lock`. What is said here about the zygote is changed with both held.
	 */
	pthread_mutex_t zygote_lock;
	pthread_mutex_t lock;
	pthread_cond_t is_free; /* signalled when a worker is not busy any more */
	const char *program;
	const char *proc; /* where /proc is */
	unsigned int time_percent;
	int control; /* socket to the zygote; -1: it is not running */
	pid_t zygote;
	int64_t zygote_ns;	      /* time at which the start of a zygote was tried last */
	int zygote_error;	      /* negative errno for which the last one is not running */
	pid_t left[ZYGOTES_LEFT_MAX]; /* zygotes that were killed and have not ended; 0: none */
	struct worker workers[WORKERS];
	bool is_ending; /* see parser_end() */
	struct owner owners[OWNERS_MAX];
	struct failure *failures; /* FAILURES_MAX entries, used in a circle */
	uint64_t n_failures;
	_Atomic uint64_t serial; /* number of the last request */
	_Atomic uint64_t cpu_ns;
	struct parser_stats stats;
};

/* Writes to call->why why the call fails. Returns `error`. */
static int __attribute__((format(printf, 3, 4)))
why_set(const struct parser_call *call, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (call->why)
		vsnprintf(call->why, PARSER_WHY_MAX, format, args);
	va_end(args);
	return error;
}

/* The zygote */

/* Reaps the zygotes that were left and have ended. Returns how many have not. Needs the lock. */
static unsigned int zygotes_reap(struct parser *parser)
{
	unsigned int n = 0;

	for (size_t i = 0; i < ZYGOTES_LEFT_MAX; i++) {
		if (parser->left[i] && waitpid(parser->left[i], NULL, WNOHANG) != 0)
			parser->left[i] = 0;
		n += parser->left[i] != 0;
	}
	return n;
}

static int zygote_execute(struct parser *parser)
{
	static char name[] = PARSE_PROCESS_NAME;
	const struct timeval limit = { .tv_sec = CONTROL_S };
	pid_t pid;
	int fd = helper_process_start(parser->program, name, &pid);

	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	pthread_mutex_lock(&parser->lock);
	parser->control = fd;
	parser->zygote = pid;
	if (parser->is_ending)
		shutdown(fd, SHUT_RDWR);
	pthread_mutex_unlock(&parser->lock);
	return 0;
}

/*
 * Starts the zygote, at most once in a while: until then, returns the error of the last one. Needs
 * zygote_lock.
 */
static int zygote_start(struct parser *parser)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	unsigned int left;

	if (parser->zygote_ns && now - parser->zygote_ns < ZYGOTE_RETRY_NS)
		return parser->zygote_error;
	pthread_mutex_lock(&parser->lock);
	left = parser->is_ending ? ZYGOTES_LEFT_MAX : zygotes_reap(parser);
	pthread_mutex_unlock(&parser->lock);
	parser->zygote_ns = now;
	parser->zygote_error = left < ZYGOTES_LEFT_MAX ? zygote_execute(parser) : -EBUSY;
	return parser->zygote_error;
}

/* Adds the zygote, which was killed, to those that are left. Returns its index there. */
static size_t zygote_leave(struct parser *parser)
{
	size_t i = 0;

	/* There is a free entry: zygote_start() starts none while all are taken. */
	while (parser->left[i])
		i++;
	parser->left[i] = parser->zygote;
	return i;
}

/*
 * Ends the zygote, which has failed with an error, by closing its socket. The daemon may not be
 * allowed to kill it, as it has another user. Waits until it has ended, but not for ever: somebody
 * may have stopped it. It is then reaped later. Needs zygote_lock.
 */
static void zygote_stop(struct parser *parser, int error)
{
	const struct timespec pause = { .tv_nsec = NS_PER_MS };
	int64_t until = clock_ns(CLOCK_MONOTONIC) + ZYGOTE_END_NS * parser->time_percent / 100;
	bool is_left = true;
	size_t i;

	if (parser->control < 0)
		return;
	pthread_mutex_lock(&parser->lock);
	close(parser->control);
	parser->control = -1;
	kill(parser->zygote, SIGKILL);
	i = zygote_leave(parser);
	pthread_mutex_unlock(&parser->lock);
	parser->zygote_error = error;
	while (is_left && clock_ns(CLOCK_MONOTONIC) < until) {
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&parser->lock);
		zygotes_reap(parser);
		is_left = parser->left[i] != 0;
		pthread_mutex_unlock(&parser->lock);
	}
}

/* Workers */

/*
 * Ends a worker. Kills it: one that a file has taken over would ignore the end of its socket, and
 * remain one of the few workers that there can be. Does not wait for a zygote that takes no order:
 * if it still takes none when another worker is to be started, it is ended, with its workers. Needs
 * the lock.
 */
static void worker_end(struct parser *parser, struct worker *worker)
{
	const struct parse_control order = { .order = PARSE_END, .pid = worker->pid };

	if (worker->fd < 0)
		return;
	close(worker->fd);
	if (parser->control >= 0)
		send(parser->control, &order, sizeof(order), MSG_DONTWAIT | MSG_NOSIGNAL);
	worker->fd = -1;
	parser->stats.workers--;
}

/* Asks the zygote for a worker. Returns its process id or a negative errno. Needs zygote_lock. */
static int64_t worker_order(struct parser *parser, int fd, bool is_urgent)
{
	const struct parse_control order = { .order = PARSE_START, .is_urgent = is_urgent };
	struct parse_started started;
	int r = parser->control < 0 ? zygote_start(parser) : 0;

	if (!r)
		r = fd_message_send(parser->control, &order, sizeof(order), &fd, 1);
	if (!r && fd_message_receive(parser->control, &started, sizeof(started), NULL, 0) ==
			  (ssize_t)sizeof(started)) {
		pthread_mutex_lock(&parser->lock);
		parser->stats.hanging = started.n_killed;
		pthread_mutex_unlock(&parser->lock);
		return started.pid;
	}
	r = r ? r : -EPIPE;
	zygote_stop(parser, r);
	return r;
}

const char *parser_start_text(int error)
{
	return error == -EPIPE	 ? "the process that starts them ended, or did not answer"
	       : error == -EBUSY ? "too many were killed and have not ended yet"
				 : strerror(-error);
}

/* Notes how the start of a worker went: each file would start one, so a failure is logged once. */
static void start_note(struct parser *parser, int error)
{
	if (error && parser->stats.start_error != error && !parser->is_ending)
		log_error("no process that parses files can be started: %s",
			  parser_start_text(error));
	parser->stats.start_error = error;
	parser->stats.workers += !error;
}

/* Starts a worker for this call. Returns 0 or a negative errno, with *out as it was. */
static int worker_start(struct parser *parser, const struct parser_call *call, struct worker *out)
{
	int64_t pid = -EPIPE;
	pid_t zygote;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	pthread_mutex_lock(&parser->zygote_lock);
	/* The zygote may have died since it started the last worker: then another one is started.
	 */
	for (int i = 0; i < 2 && pid == -EPIPE; i++)
		pid = worker_order(parser, ends[1], call->is_urgent);
	zygote = parser->zygote;
	pthread_mutex_unlock(&parser->zygote_lock);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return (int)pid;
	}
	*out = (struct worker){
		.fd = ends[0],
		.pid = (pid_t)pid,
		.zygote = zygote,
		.is_busy = true,
		.dev = call->state ? call->state->dev : 0,
		.owner = call->owner,
	};
	return 0;
}

/* Starts the worker of an entry that is marked as busy. Returns 0 or a negative errno. */
static int worker_begin(struct parser *parser, struct worker *worker,
			const struct parser_call *call)
{
	struct worker started = { .fd = -1 };
	int r = worker_start(parser, call, &started);

	pthread_mutex_lock(&parser->lock);
	*worker = started;
	start_note(parser, r);
	if (!r && parser->is_ending)
		shutdown(started.fd, SHUT_RDWR);
	pthread_cond_broadcast(&parser->is_free);
	pthread_mutex_unlock(&parser->lock);
	return r;
}

/* True if the worker, which is running, may be asked about the file of the call. */
static bool is_fit(const struct worker *worker, const struct parser_call *call)
{
	return !call->is_alone && worker->dev == (call->state ? call->state->dev : 0) &&
	       worker->owner == call->owner;
}

/*
 * Returns the best worker for a request that is not busy: one that has parsed files of the same
 * owner, one that is not running, or another one, which is then replaced. NULL if all are busy.
 */
static struct worker *worker_choose(struct parser *parser, const struct parser_call *call)
{
	size_t first = WORKERS_URGENT + WORKERS_NAMES, end = WORKERS;
	struct worker *best = NULL;

	if (call->is_urgent) {
		first = 0;
		end = WORKERS_URGENT;
	} else if (call->request.kind == PARSE_NAME) {
		first = WORKERS_URGENT;
		end = WORKERS_URGENT + WORKERS_NAMES;
	}
	for (size_t i = first; i < end; i++) {
		struct worker *worker = &parser->workers[i];

		if (worker->is_busy)
			continue;
		if (worker->fd >= 0 && is_fit(worker, call))
			return worker;
		if (!best || (best->fd >= 0 && (worker->fd < 0 || worker->used_ns < best->used_ns)))
			best = worker;
	}
	return best;
}

/* Takes a worker for a request, and waits for it if all are busy. Returns 0 or -EAGAIN. */
static int worker_take(struct parser *parser, const struct parser_call *call, struct worker **out)
{
	struct worker *worker;
	bool is_running;
	int r = 0;

	pthread_mutex_lock(&parser->lock);
	while (!parser->is_ending && !(worker = worker_choose(parser, call)))
		pthread_cond_wait(&parser->is_free, &parser->lock);
	if (parser->is_ending) {
		pthread_mutex_unlock(&parser->lock);
		return why_set(call, -EAGAIN, "stackd stops");
	}
	if (worker->fd >= 0 && !is_fit(worker, call))
		worker_end(parser, worker);
	worker->is_busy = true;
	is_running = worker->fd >= 0;
	parser->stats.requests++;
	pthread_mutex_unlock(&parser->lock);
	*out = worker;
	if (!is_running)
		r = worker_begin(parser, worker, call);
	if (!r)
		return 0;
	return why_set(call, -EAGAIN, "no process that parses files can be started: %s",
		       parser_start_text(r));
}

/* Ends workers that have not been needed for a while. The caller holds the lock. */
static void workers_retire(struct parser *parser, int64_t now)
{
	for (size_t i = 0; i < WORKERS; i++) {
		struct worker *worker = &parser->workers[i];

		if (worker->fd >= 0 && !worker->is_busy && now - worker->used_ns > WORKER_IDLE_NS)
			worker_end(parser, worker);
	}
}

/* Shares of users */

uint64_t parser_owner_key(uid_t uid, uint64_t group)
{
	if (!uid)
		return group | OWNER_IS_GROUP;
	/* The users of a container are one user of the host. */
	return uid < SUBUIDS_FROM ? uid : uid - (uid - SUBUIDS_FROM) % SUBUIDS;
}

/*
 * Returns the CPU time of this owner's files. If there is no room for another owner, forgets the
 * one who has used least. The caller holds the lock.
 */
static struct owner *owner_get(struct parser *parser, uint64_t key)
{
	const int64_t now = clock_ns(CLOCK_MONOTONIC);
	struct owner *found = NULL, *least = NULL;

	for (size_t i = 0; i < OWNERS_MAX; i++) {
		struct owner *owner = &parser->owners[i];

		owner->debt_ns -= (now - owner->paid_ns) / OWNER_SHARE;
		owner->paid_ns = now;
		if (owner->debt_ns < 0)
			owner->debt_ns = 0;
		if (owner->key == key)
			found = owner;
		if (!least || owner->debt_ns < least->debt_ns)
			least = owner;
	}
	if (!found) {
		found = least;
		*found = (struct owner){ .key = key, .paid_ns = now };
	}
	return found;
}

/* Takes the CPU time of a request from the share of the file's owner. */
static void owner_charge(struct parser *parser, const struct parser_call *call, int64_t cpu_ns)
{
	pthread_mutex_lock(&parser->lock);
	owner_get(parser, parser_owner_key(call->owner, call->group))->debt_ns += cpu_ns;
	pthread_mutex_unlock(&parser->lock);
}

/*
 * True if files of this owner have to wait. The vdso and requests that read only headers, without
 * which a process has no mappings, never do, nor those for a client, nor does a name to demangle,
 * which takes little and is not asked for again.
 */
static bool owner_waits(struct parser *parser, const struct parser_call *call)
{
	static const bool is_heavy[PARSE_KINDS] = {
		[PARSE_DEBUG] = true,
		[PARSE_SYMBOLS] = true,
		[PARSE_ROWS] = true,
		[PARSE_PERF] = true,
	};
	const int64_t most_ns = PARSER_OWNER_NS * parser->time_percent / 100;
	struct owner *owner;
	bool is_waiting, is_new;

	if (!call->state || call->is_alone || !is_heavy[call->request.kind])
		return false;
	pthread_mutex_lock(&parser->lock);
	owner = owner_get(parser, parser_owner_key(call->owner, call->group));
	is_waiting = owner->debt_ns > most_ns;
	is_new = is_waiting && !owner->is_waiting;
	owner->is_waiting = is_waiting;
	parser->stats.postponed += is_waiting;
	pthread_mutex_unlock(&parser->lock);
	if (is_new)
		log_notice("files of user %u%s take too long to parse, such as %s: they wait",
			   (unsigned int)call->owner, call->owner ? "" : " in one control group",
			   call->path);
	return is_waiting;
}

/* Files that were given up */

static bool is_valid(const struct failure *failure, int64_t now)
{
	return !failure->until_ns || now < failure->until_ns;
}

/* Returns what is remembered of a file and a kind of request, valid or not; NULL: nothing. */
static struct failure *failure_entry(struct parser *parser, const struct parser_call *call)
{
	uint64_t n = parser->n_failures < FAILURES_MAX ? parser->n_failures : FAILURES_MAX;

	for (uint64_t i = 0; i < n && call->state; i++) {
		struct failure *failure = &parser->failures[i];

		if (failure->kind == call->request.kind &&
		    !memcmp(&failure->state, call->state, sizeof(failure->state)))
			return failure;
	}
	return NULL;
}

static const struct failure *failure_find(struct parser *parser, const struct parser_call *call)
{
	const struct failure *failure = failure_entry(parser, call);

	return failure && is_valid(failure, clock_ns(CLOCK_MONOTONIC)) ? failure : NULL;
}

/*
 * Remembers that a file cannot be parsed; for a while only if the error is -EAGAIN. `reason` is
 * NULL if the worker itself said so.
 */
static void failure_note(struct parser *parser, const struct parser_call *call, int error,
			 const char *reason)
{
	struct failure *failure = failure_entry(parser, call);

	if (reason) {
		parser->stats.given_up += error != -EAGAIN;
		log_notice("%s is not read: %s", call->path, reason);
	}
	if (!call->state || (failure && is_valid(failure, clock_ns(CLOCK_MONOTONIC))))
		return;
	if (!failure) /* what is tried again each minute must not push out the others */
		failure = &parser->failures[parser->n_failures++ % FAILURES_MAX];
	*failure = (struct failure){
		.state = *call->state,
		.kind = call->request.kind,
		.error = error,
		.said.reason = reason,
	};
	if (error == -EAGAIN)
		failure->until_ns =
			clock_ns(CLOCK_MONOTONIC) + STARVED_NS * parser->time_percent / 100;
	snprintf(failure->said.path, sizeof(failure->said.path), "%s", call->path);
}

/* Returns 0 if the file of the call was not given up, else the error that this gave. */
static int failure_known(struct parser *parser, const struct parser_call *call)
{
	const struct failure *failure;
	int r;

	pthread_mutex_lock(&parser->lock);
	failure = failure_find(parser, call);
	r = failure ? failure->error : 0;
	if (failure && failure->said.reason)
		why_set(call, r, "%s", failure->said.reason);
	pthread_mutex_unlock(&parser->lock);
	return r;
}

/* Conversations */

static int socket_wait(int fd, short events, int64_t until_ns)
{
	int64_t left = until_ns - clock_ns(CLOCK_MONOTONIC);
	struct pollfd poll_fd = { .fd = fd, .events = events };

	if (left <= 0)
		return -ETIMEDOUT;
	if (poll(&poll_fd, 1, (int)(left / NS_PER_MS) + 1) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

static int bytes_send(int fd, const char *from, size_t size, int64_t until_ns)
{
	while (size) {
		ssize_t n = send(fd, from, size, MSG_NOSIGNAL);
		int r = 0;

		if (n < 0 && errno != EAGAIN)
			return -EPIPE;
		if (n < 0)
			r = socket_wait(fd, POLLOUT, until_ns);
		if (r)
			return r;
		from += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int bytes_receive(int fd, char *to, size_t size, int64_t until_ns)
{
	while (size) {
		ssize_t n = recv(fd, to, size, 0);
		int r = 0;

		if (n == 0 || (n < 0 && errno != EAGAIN))
			return -EPIPE;
		if (n < 0)
			r = socket_wait(fd, POLLIN, until_ns);
		if (r)
			return r;
		to += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int request_send(int fd, const struct parser_call *call, uint64_t serial, uint64_t cpu_ms,
			int64_t until_ns)
{
	const int fds[] = { call->fd, call->debug_fd };
	struct parse_request request = call->request;

	request.serial = serial;
	request.cpu_ms = cpu_ms;
	request.size = call->size;
	request.n_fds = call->fd < 0 ? 0 : call->debug_fd < 0 ? 1 : 2;
	/* If the worker has died since its last answer, this file is not to blame. */
	if (fd_message_send(fd, &request, sizeof(request), fds, request.n_fds))
		return -ESTALE;
	return bytes_send(fd, call->data, call->size, until_ns);
}

/*
 * Sends the request and receives the answer. Returns 0 with the worker's error in answer->error;
 * -EPIPE if the worker died, -ETIMEDOUT, -EPROTO if the answer is nonsense,
 * -ESTALE if it is the answer to another request, or -ENOMEM.
 */
static int worker_ask(const struct worker *worker, const struct parser_call *call, uint64_t serial,
		      uint64_t cpu_ms, int64_t until_ns, struct parse_answer *answer)
{
	_cleanup_(freep) void *data = NULL;
	int r = request_send(worker->fd, call, serial, cpu_ms, until_ns);

	if (r)
		return r;
	r = socket_wait(worker->fd, POLLIN, until_ns);
	if (r)
		return r;
	r = bytes_receive(worker->fd, (char *)answer, sizeof(*answer), until_ns);
	if (r)
		return r;
	if (answer->serial != serial)
		return -ESTALE;
	if (answer->kind != call->request.kind || answer->error > 0 || answer->error < -4095 ||
	    answer->size > call->request.max_bytes || (answer->error && answer->size))
		return -EPROTO;
	if (answer->error)
		return 0;
	data = malloc(answer->size + 1);
	if (!data)
		return -ENOMEM;
	r = bytes_receive(worker->fd, data, answer->size, until_ns);
	if (r)
		return r;
	return call->decode(call->context, &data, answer->size);
}

/*
 * True if the zygote that started the worker is no more, so that the worker was ended with it. The
 * caller holds the lock.
 */
static bool zygote_is_gone(const struct parser *parser, const struct worker *worker)
{
	siginfo_t info = { 0 };

	return parser->control < 0 || worker->zygote != parser->zygote ||
	       waitid(P_PID, (id_t)worker->zygote, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
	       info.si_pid;
}

/*
 * True if a worker that did not answer for took_ns is ready to run, but got next to no CPU: anybody
 * can keep the CPUs busy. *cpu_ns_out gets the CPU time that it has used since it was asked.
 */
static bool worker_starved(const struct parser *parser, const struct worker *worker,
			   int64_t took_ns, uint64_t *cpu_ns_out)
{
	_cleanup_(fclosep) FILE *f = NULL;
	uint64_t user, system, cpu_ns;
	char path[64], state;

	snprintf(path, sizeof(path), "%s/%d/stat", parser->proc, (int)worker->pid);
	f = fopen(path, "re");
	if (!f ||
	    fscanf(f,
		   "%*d (%*[^)]) %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64,
		   &state, &user, &system) != 3)
		return false;
	cpu_ns = procfs_ticks_ns(user + system);
	*cpu_ns_out = cpu_ns > worker->cpu_ns ? cpu_ns - worker->cpu_ns : 0;
	return state == 'R' && *cpu_ns_out < (uint64_t)took_ns / 4;
}

/*
 * Gives a worker back, or ends it if it failed. is_starved: it did not answer as it got no CPU.
 * Returns what parser_ask() returns.
 */
static int worker_give(struct parser *parser, struct worker *worker, const struct parser_call *call,
		       int r, const struct parse_answer *answer, bool is_late, bool is_starved)
{
	const int error = is_starved ? -EAGAIN : -EPROTO;
	const char *reason = NULL;

	pthread_mutex_lock(&parser->lock);
	/* Somebody has killed the zygote, or it did not answer: that is not the file's fault. */
	if (r == -EPIPE && (parser->is_ending || zygote_is_gone(parser, worker)))
		r = -ESTALE;
	if (is_starved)
		reason = "the CPUs were too busy for it; it is tried again in a minute";
	else if (r == -EPROTO)
		reason = "the process that parsed it answered nonsense";
	else if (r && r != -ENOMEM && r != -ESTALE)
		reason = is_late ? "parsing it took too long"
				 : "it took too much memory to parse, or crashed the parser";
	parser->cpu_ns += answer->cpu_ns;
	worker->is_busy = false;
	worker->used_ns = clock_ns(CLOCK_MONOTONIC);
	/* How much of a perf map fits depends on the maps of others: that is not noted. */
	if (reason)
		failure_note(parser, call, error, reason);
	else if (!r && answer->error == -E2BIG && call->request.kind != PARSE_PERF)
		failure_note(parser, call, -E2BIG, NULL);
	if (r) {
		parser->stats.replaced++;
		worker_end(parser, worker);
	} else {
		worker->cpu_ns += answer->cpu_ns;
		if (worker->cpu_ns > (uint64_t)WORKER_CPU_NS)
			worker_end(parser, worker);
	}
	workers_retire(parser, worker->used_ns);
	pthread_cond_broadcast(&parser->is_free);
	pthread_mutex_unlock(&parser->lock);
	if (reason)
		return why_set(call, error, "%s", reason);
	return r ? r : answer->error;
}

/* Asks one worker. Returns what parser_ask() returns, or -ESTALE: another worker is to be asked. */
static int call_try(struct parser *parser, const struct parser_call *call, int64_t *cpu_ns)
{
	uint64_t usual_ms = call->is_urgent ? CPU_URGENT_MS : CPU_MS;
	uint64_t cpu_ms = (call->cpu_ms ? call->cpu_ms : usual_ms) * parser->time_percent / 100;
	uint64_t wall_ms = cpu_ms * DEADLINE_TIMES + DEADLINE_MS * parser->time_percent / 100;
	struct parse_answer answer = { 0 };
	struct worker *worker = NULL;
	int64_t begun, took;
	uint64_t used_ns = 0;
	bool is_starved;
	int r = worker_take(parser, call, &worker);

	if (r)
		return r;
	begun = clock_ns(CLOCK_MONOTONIC);
	r = worker_ask(worker, call, ++parser->serial, cpu_ms, begun + (int64_t)wall_ms * NS_PER_MS,
		       &answer);
	took = clock_ns(CLOCK_MONOTONIC) - begun;
	is_starved = r == -ETIMEDOUT && worker_starved(parser, worker, took, &used_ns);
	/*
	 * The worker cannot have used more CPU time than has passed. If it did not answer, it may
	 * have used all of that.
	 */
	if (is_starved)
		answer.cpu_ns = used_ns;
	else if (r || answer.cpu_ns > (uint64_t)took)
		answer.cpu_ns = (uint64_t)took;
	*cpu_ns += (int64_t)answer.cpu_ns;
	return worker_give(parser, worker, call, r, &answer, took >= (int64_t)cpu_ms * NS_PER_MS,
			   is_starved);
}

int parser_ask(struct parser *parser, const struct parser_call *call, int64_t *cpu_ns)
{
	int r = failure_known(parser, call);

	*cpu_ns = 0;
	/*
	 * A worker that was taken over by the last file may have answered the next request before
	 * it came. That is not the fault of this file.
	 */
	if (!r && owner_waits(parser, call))
		return why_set(call, -EAGAIN, "files of its owner take too long to parse");
	if (!r)
		r = call_try(parser, call, cpu_ns);
	if (r == -ESTALE)
		r = call_try(parser, call, cpu_ns);
	owner_charge(parser, call, *cpu_ns);
	if (r == -ESTALE)
		return why_set(call, -EAGAIN, "two processes that were to parse it ended before");
	return r;
}

int parser_new(const char *program, struct parser **out)
{
	struct parser *parser = calloc(1, sizeof(*parser));
	int r;

	if (!parser)
		return -ENOMEM;
	pthread_mutex_init(&parser->zygote_lock, NULL);
	pthread_mutex_init(&parser->lock, NULL);
	pthread_cond_init(&parser->is_free, NULL);
	parser->program = program ? program : "/proc/self/exe";
	parser->proc = "/proc";
	parser->time_percent = 100;
	parser->control = -1;
	for (size_t i = 0; i < WORKERS; i++)
		parser->workers[i].fd = -1;
	parser->failures = calloc(FAILURES_MAX, sizeof(*parser->failures));
	r = parser->failures ? zygote_start(parser) : -ENOMEM;
	if (r) {
		parser_free(parser);
		return r;
	}
	*out = parser;
	return 0;
}

void parser_end(struct parser *parser)
{
	pthread_mutex_lock(&parser->lock);
	parser->is_ending = true;
	for (size_t i = 0; i < WORKERS; i++)
		if (parser->workers[i].fd >= 0)
			shutdown(parser->workers[i].fd, SHUT_RDWR);
	if (parser->control >= 0)
		shutdown(parser->control, SHUT_RDWR);
	pthread_cond_broadcast(&parser->is_free);
	pthread_mutex_unlock(&parser->lock);
}

struct parser *parser_free(struct parser *parser)
{
	if (!parser)
		return NULL;
	for (size_t i = 0; i < WORKERS; i++)
		worker_end(parser, &parser->workers[i]);
	zygote_stop(parser, 0);
	pthread_cond_destroy(&parser->is_free);
	pthread_mutex_destroy(&parser->lock);
	pthread_mutex_destroy(&parser->zygote_lock);
	free(parser->failures);
	free(parser);
	return NULL;
}

void parser_set_time(struct parser *parser, unsigned int percent)
{
	parser->time_percent = percent;
}

void parser_set_proc(struct parser *parser, const char *proc)
{
	parser->proc = proc;
}

const _Atomic uint64_t *parser_cpu_ns(const struct parser *parser)
{
	return &parser->cpu_ns;
}

void parser_stats(struct parser *parser, struct parser_stats *out)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(&parser->lock);
	*out = parser->stats;
	out->hanging += zygotes_reap(parser);
	out->cpu_ns = parser->cpu_ns;
	for (uint64_t i = parser->n_failures; i-- > 0 && parser->n_failures - i <= FAILURES_MAX;) {
		const struct failure *failure = &parser->failures[i % FAILURES_MAX];

		if (out->n_failures < PARSER_REPORTED_MAX && failure->said.reason &&
		    is_valid(failure, now))
			out->failures[out->n_failures++] = failure->said;
	}
	pthread_mutex_unlock(&parser->lock);
}

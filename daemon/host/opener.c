/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/base/thread.h"
#include "daemon/host/fd_message.h"
#include "daemon/host/helper_process.h"
#include "daemon/host/open_here.h"
#include "daemon/host/opener_message.h"
#include "daemon/host/procfs.h"

/*
 * DEADLINE_NS: the usual time that opening a file may take. A disk that works needs some
 * milliseconds, but the CPUs and the disk may be busy.
 */
#define DEADLINE_NS    (5 * NS_PER_S)
#define PAUSE_NS       (60 * NS_PER_S)
#define START_RETRY_NS NS_PER_S
#define END_NS	       (2 * NS_PER_S)

/* The device number has the lower 20 bits for its minor number, as the kernel has it. */
enum { DEV_MINOR_BITS = 20 };

enum { OPENERS = 4, HANGS_MAX = OPENERS_HANGING_MAX + OPENERS };

struct opener {
	int fd; /* socket to the process; -1: it is not running */
	pid_t pid;
	bool is_busy;
};

/*
 * Where a file is looked for. A look-up that may enter other mounts may hang in any of them: it
 * stands for the mount in which it begins. Others stand for the device of their file system.
 */
struct place {
	bool is_mount;
	uint64_t dev, mount;
};

/* A place where opening took too long. */
struct hang {
	struct place place;
	pid_t pid;	  /* the process that was killed and has not ended; 0: it has */
	int64_t until_ns; /* nothing is opened there until this time; 0: the entry is free */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t is_free; /* signalled when a process is not busy any more */
	pid_t user;		/* the process whose files are opened; 0: none */
	struct opener_options options;
	_Atomic int64_t start_failed_ns; /* 0: the last start of a process worked */
	int priority; /* of the processes: threads that must not be late wait for them */
	struct opener openers[OPENERS];
	struct hang hangs[HANGS_MAX];
	struct opener_stats stats;
} state = { .lock = PTHREAD_MUTEX_INITIALIZER, .is_free = PTHREAD_COND_INITIALIZER };

void opener_start(const struct opener_options *options)
{
	state.options = *options;
	if (!state.options.program)
		state.options.program = "/proc/self/exe";
	if (!state.options.deadline_ns)
		state.options.deadline_ns = DEADLINE_NS;
	if (!state.options.pause_ns)
		state.options.pause_ns = PAUSE_NS;
	for (size_t i = 0; i < OPENERS; i++)
		state.openers[i] = (struct opener){ .fd = -1 };
	memset(state.hangs, 0, sizeof(state.hangs));
	state.stats = (struct opener_stats){ 0 };
	state.start_failed_ns = 0;
	state.priority = getpriority(PRIO_PROCESS, 0) - THREAD_URGENCY;
	state.user = getpid();
}

bool opener_is_on(void)
{
	return state.user && state.user == getpid();
}

/* Places that hang */

static struct place place_of(const struct open_request *request, int at_fd)
{
	struct place place = {
		.is_mount = request->kind == OPEN_IN_ROOT && !(request->resolve & RESOLVE_NO_XDEV),
		.dev = makedev(request->dev >> DEV_MINOR_BITS,
			       request->dev & ((1U << DEV_MINOR_BITS) - 1)),
	};
	struct statx st;

	if (at_fd < 0 ||
	    statx(at_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) < 0)
		return place;
	place.dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	place.mount = st.stx_mnt_id;
	return place;
}

static bool place_is_in(const struct place *place, const struct hang *hang)
{
	if (!hang->until_ns)
		return false;
	if (hang->place.is_mount)
		return place->is_mount && place->mount == hang->place.mount;
	return place->dev == hang->place.dev;
}

/* Forgets the places that may be tried again. Returns how many processes hang. Needs the lock. */
static unsigned int hangs_reap(void)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	unsigned int n = 0;

	for (size_t i = 0; i < HANGS_MAX; i++) {
		struct hang *hang = &state.hangs[i];

		if (hang->pid && helper_process_reap(hang->pid) != 0)
			hang->pid = 0;
		if (!hang->pid && hang->until_ns <= now)
			hang->until_ns = 0;
		n += hang->pid != 0;
	}
	return n;
}

/* Returns an entry for another hang: a free one, or the oldest without a process. */
static struct hang *hang_new(void)
{
	struct hang *found = NULL;

	for (size_t i = 0; i < HANGS_MAX; i++) {
		struct hang *hang = &state.hangs[i];

		if (!hang->pid && (!found || hang->until_ns < found->until_ns))
			found = hang;
	}
	return found;
}

/* Writes what was to be opened. Asks no file system. */
static void place_describe(const struct open_request *request, int at_fd,
			   char out[static OPENER_PLACE_MAX])
{
	char path[PATH_MAX];
	const char *text = request->path;

	if (request->kind == OPEN_BY_INODE) {
		snprintf(path, sizeof(path), "inode %llu of device %u:%u",
			 (unsigned long long)request->inode, request->dev >> DEV_MINOR_BITS,
			 request->dev & ((1U << DEV_MINOR_BITS) - 1));
		text = path;
	} else if (request->kind == OPEN_FD) {
		text = procfs_read_fd(at_fd, path) ? "a file" : path;
	}
	snprintf(out, OPENER_PLACE_MAX, "%.*s", OPENER_PLACE_MAX - 1, text);
}

/* Processes */

/* Starts a process that is busy: without the lock, as executing the program may hang, too. */
static int process_start(struct opener *opener)
{
	static char name[] = OPENER_PROCESS_NAME;
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	int fd;

	if (state.start_failed_ns && now - state.start_failed_ns < START_RETRY_NS)
		return -EAGAIN;
	fd = helper_process_start(state.options.program, name, &opener->pid);
	state.start_failed_ns = fd < 0 ? now : 0;
	if (fd < 0) {
		log_err(fd, "start a process that opens files");
		return -EAGAIN;
	}
	opener->fd = fd;
	setpriority(PRIO_PROCESS, (id_t)opener->pid, state.priority);
	return 0;
}

/* Ends a process, and waits for it at most until `until_ns`. */
static void process_end(struct opener *opener, int64_t until_ns)
{
	if (opener->fd < 0)
		return;
	close(opener->fd);
	opener->fd = -1;
	kill(opener->pid, SIGKILL);
	helper_process_reap_until(opener->pid, until_ns);
}

/* Leaves a process behind that has not answered in time. */
static void process_leave(struct opener *opener, const struct open_request *request, int at_fd,
			  const struct place *place)
{
	struct hang *hang = hang_new();

	close(opener->fd);
	opener->fd = -1;
	kill(opener->pid, SIGKILL);
	/* There is an entry: process_take() starts no work while OPENERS_HANGING_MAX hang. */
	*hang = (struct hang){
		.place = *place,
		.pid = opener->pid,
		.until_ns = clock_ns(CLOCK_MONOTONIC) + state.options.pause_ns,
	};
	state.stats.hung++;
	place_describe(request, at_fd, state.stats.place);
	log_notice("opening %s takes too long: nothing of its file system is opened for a while",
		   state.stats.place);
}

/* Returns a process that is not busy, one that runs if there is one; NULL if all are busy. */
static struct opener *process_idle(void)
{
	struct opener *found = NULL;

	for (size_t i = 0; i < OPENERS; i++) {
		struct opener *opener = &state.openers[i];

		if (!opener->is_busy && (!found || found->fd < 0))
			found = opener;
	}
	return found;
}

/* Returns 0 if a file at this place may be opened, else -ETIMEDOUT or -EBUSY. Needs the lock. */
static int place_check(const struct place *place)
{
	int r = hangs_reap() >= OPENERS_HANGING_MAX ? -EBUSY : 0;

	for (size_t i = 0; i < HANGS_MAX && !r; i++)
		r = place_is_in(place, &state.hangs[i]) ? -ETIMEDOUT : 0;
	state.stats.refused += r != 0;
	return r;
}

/* Lets other threads have a process. */
static void process_free(struct opener *opener)
{
	pthread_mutex_lock(&state.lock);
	opener->is_busy = false;
	pthread_cond_broadcast(&state.is_free);
	pthread_mutex_unlock(&state.lock);
}

/* Takes a process, and starts it if need be. Returns what opener_ask() does. */
static int process_take(const struct place *place, struct opener **out)
{
	const int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + state.options.deadline_ns;
	struct opener *opener;
	int r;

	pthread_mutex_lock(&state.lock);
	for (;;) {
		r = place_check(place);
		opener = r ? NULL : process_idle();
		if (r || opener)
			break;
		r = thread_wait_until(&state.is_free, &state.lock, until_ns);
		if (r == -ETIMEDOUT) {
			r = -EBUSY;
			break;
		}
	}
	if (!r)
		opener->is_busy = true;
	pthread_mutex_unlock(&state.lock);
	if (!r && opener->fd < 0) {
		r = process_start(opener);
		if (r)
			process_free(opener);
	}
	*out = opener;
	return r;
}

/* Gives a process back after a conversation that ended with r. */
static void process_give(struct opener *opener, int r, const struct open_request *request,
			 int at_fd, const struct place *place)
{
	if (r == -ETIMEDOUT) {
		pthread_mutex_lock(&state.lock);
		process_leave(opener, request, at_fd, place);
		pthread_mutex_unlock(&state.lock);
	} else if (r) {
		process_end(opener, clock_ns(CLOCK_MONOTONIC) + END_NS);
	}
	process_free(opener);
}

/*
 * Sends a request and receives the answer. Returns 0 and sets *result_out to an fd or a negative
 * errno; -ETIMEDOUT if no answer came in time; -EPIPE if the process does not run any more.
 */
static int exchange(const struct opener *opener, const struct open_request *request, int at_fd,
		    int *result_out)
{
	const size_t size = offsetof(struct open_request, path) + strlen(request->path) + 1;
	struct opener_answer answer;
	int fd, r;
	ssize_t n;

	if (fd_message_send(opener->fd, request, size, &at_fd, at_fd >= 0))
		return -EPIPE;
	r = helper_process_wait(opener->fd, clock_ns(CLOCK_MONOTONIC) + state.options.deadline_ns);
	if (r)
		return r;
	n = fd_message_receive(opener->fd, &answer, sizeof(answer), &fd, 1);
	if (n != (ssize_t)sizeof(answer) || answer.error > 0 || (answer.error && fd >= 0)) {
		closep(&fd);
		return -EPIPE;
	}
	helper_process_count(answer.cpu_ns);
	/* The kernel leaves the descriptor out if this process has too many. */
	*result_out = answer.error ? answer.error : fd < 0 ? -EMFILE : fd;
	return 0;
}

int opener_ask(const struct open_request *request, int at_fd)
{
	const struct place place = place_of(request, at_fd);
	struct opener *opener;
	int r = -EPIPE, result = -EAGAIN;

	/* A process that was killed for want of memory is replaced once. */
	for (int i = 0; i < 2 && r == -EPIPE; i++) {
		r = process_take(&place, &opener);
		if (r)
			return r;
		r = exchange(opener, request, at_fd, &result);
		process_give(opener, r, request, at_fd, &place);
	}
	return r == -ETIMEDOUT ? r : r ? -EAGAIN : result;
}

const char *opener_error_text(int error)
{
	return error == -ETIMEDOUT ? "its file system does not answer"
	       : error == -EBUSY   ? "too many processes that open files hang or are busy"
	       : error == -EAGAIN  ? "no process that opens files can be started"
				   : strerror(-error);
}

void opener_stats(struct opener_stats *out)
{
	pthread_mutex_lock(&state.lock);
	state.stats.hanging = hangs_reap();
	*out = state.stats;
	pthread_mutex_unlock(&state.lock);
}

void opener_stop(void)
{
	int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + END_NS;

	pthread_mutex_lock(&state.lock);
	/* One that is busy belongs to another thread; it ends with its socket. */
	for (size_t i = 0; i < OPENERS && state.user; i++)
		if (!state.openers[i].is_busy)
			process_end(&state.openers[i], until_ns);
	hangs_reap();
	state.user = 0;
	pthread_mutex_unlock(&state.lock);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/holder/holder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/base/answer_time.h"
#include "daemon/base/thread.h"
#include "daemon/holder/unix_diag.h"

/* Questions and their answers, in memory that the child process shares with the daemon. */
struct job {
	struct holder_question questions[HOLDER_LOOKUPS];
	struct found {
		struct holder_answer answer;
		char object[PATH_MAX];
	} found[HOLDER_LOOKUPS];
	size_t n;
	atomic_size_t n_done; /* number of members of `found` that are complete */
	int64_t deadline_ns;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t ended;	  /* a call of holder_find() has ended */
	bool is_busy;		  /* a call of holder_find() is at work */
	pid_t left;		  /* a child that was killed, but has not ended yet; 0: none */
	enum holder_use left_use; /* what that child was for */
	int diag_fd;		  /* see holder_diag_take(); -1: none */
} state = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.ended = PTHREAD_COND_INITIALIZER,
	.diag_fd = -1,
};

bool holder_diag_take(int fd)
{
	if (!unix_diag_is(fd))
		return false;
	state.diag_fd = fd;
	return true;
}

void holder_answers_fini(struct holder_answer *answers, size_t n)
{
	while (n--)
		free(TAKE(answers[n].object));
}

/* Closes all descriptors but two, of which `b` may be -1. */
static int others_close(int a, int b)
{
	int low = b < 0 || a < b ? a : b, high = a > b ? a : b;

	if ((low > 0 && close_range(0, (unsigned int)low - 1, 0) < 0) ||
	    (high > low + 1 && close_range((unsigned int)low + 1, (unsigned int)high - 1, 0) < 0) ||
	    close_range((unsigned int)high + 1, ~0U, 0) < 0)
		return -errno;
	return 0;
}

/*
 * Runs in the child: looks everything up, and exits. Closes all descriptors of the daemon but `fd`
 * and the netlink socket, so that a child that hangs keeps none of them; the end of `fd` tells the
 * daemon that it is done.
 */
static noreturn void child_run(struct job *job, int fd)
{
	struct holder_search *search;

	prctl(PR_SET_NAME, "stackd-holders");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (others_close(fd, state.diag_fd))
		_exit(EXIT_FAILURE);
	search = holder_search_new(job->deadline_ns, state.diag_fd);
	if (!search)
		_exit(EXIT_FAILURE);
	for (size_t i = 0; i < job->n && clock_ns(CLOCK_MONOTONIC) < job->deadline_ns; i++) {
		struct found *found = &job->found[i];

		holder_look_up(search, &job->questions[i], &found->answer);
		if (found->answer.object)
			snprintf(found->object, sizeof(found->object), "%s", found->answer.object);
		atomic_store(&job->n_done, i + 1);
	}
	_exit(EXIT_SUCCESS);
}

/* Starts the child. Sets *fd_out to a descriptor that hangs up when the child ends. */
static int child_start(struct job *job, pid_t *pid_out, int *fd_out)
{
	int fds[2], r = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		child_run(job, fds[1]);
	if (pid < 0)
		r = -errno;
	close(fds[1]);
	if (r)
		close(fds[0]);
	*pid_out = pid;
	*fd_out = fds[0];
	return r;
}

/* Does what waitpid() does. The time of a child for a window is part of what recording costs. */
static pid_t child_reap(pid_t pid, enum holder_use use, int options)
{
	return use == HOLDER_FOR_ANSWER ? answer_time_wait(pid, NULL, options)
					: waitpid(pid, NULL, options);
}

/* Waits until the child has ended, at most until the deadline, and then kills it. */
static void child_wait(const struct job *job, enum holder_use use, pid_t pid, int fd)
{
	struct pollfd end = { .fd = fd, .events = POLLIN };
	int64_t left_ns;

	do {
		left_ns = job->deadline_ns - clock_ns(CLOCK_MONOTONIC);
		if (left_ns <= 0 || poll(&end, 1, (int)(left_ns / NS_PER_MS) + 1) > 0)
			break;
	} while (true);
	if (!end.revents) {
		kill(pid, SIGKILL);
		poll(&end, 1, 10);
	}
	if (child_reap(pid, use, end.revents ? 0 : WNOHANG) == pid)
		pid = 0;
	pthread_mutex_lock(&state.lock);
	state.left = pid;
	state.left_use = use;
	pthread_mutex_unlock(&state.lock);
}

/* Copies the answers that are there. Returns 0 or -ENOMEM. */
static int answers_take(const struct job *job, struct holder_answer *answers)
{
	size_t done = atomic_load(&job->n_done), i;

	for (i = 0; i < done && i < job->n; i++) {
		const struct found *found = &job->found[i];

		answers[i] = found->answer;
		answers[i].object = found->answer.object ? strdup(found->object) : NULL;
		if (found->answer.object && !answers[i].object)
			return -ENOMEM;
	}
	return 0;
}

/*
 * Waits until no other call is at work, at most for a time. True if this call may begin: no other
 * is at work, and no child is left.
 */
static bool turn_take(int64_t timeout_ns)
{
	const int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + timeout_ns;
	bool is_free;

	pthread_mutex_lock(&state.lock);
	while (state.is_busy)
		if (thread_wait_until(&state.ended, &state.lock, until_ns))
			break;
	if (!state.is_busy && state.left && child_reap(state.left, state.left_use, WNOHANG) != 0)
		state.left = 0;
	is_free = !state.is_busy && !state.left;
	if (is_free)
		state.is_busy = true;
	pthread_mutex_unlock(&state.lock);
	return is_free;
}

int holder_find(const struct holder_question *questions, size_t n, enum holder_use use,
		struct holder_answer *answers)
{
	const int64_t timeout_ns =
		use == HOLDER_FOR_WINDOW ? HOLDER_WINDOW_DEADLINE_NS : HOLDER_DEADLINE_NS;
	struct job *job;
	pid_t pid = -1;
	int r, fd = -1;

	if (!turn_take(timeout_ns))
		return -EBUSY;
	job = mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	r = job == MAP_FAILED ? -ENOMEM : 0;
	if (!r) {
		job->n = n < HOLDER_LOOKUPS ? n : HOLDER_LOOKUPS;
		memcpy(job->questions, questions, job->n * sizeof(*questions));
		job->deadline_ns = clock_ns(CLOCK_MONOTONIC) + timeout_ns;
		r = child_start(job, &pid, &fd);
		if (!r) {
			child_wait(job, use, pid, fd);
			close(fd);
			r = answers_take(job, answers);
		}
		munmap(job, sizeof(*job));
	}
	pthread_mutex_lock(&state.lock);
	state.is_busy = false;
	pthread_cond_signal(&state.ended);
	pthread_mutex_unlock(&state.lock);
	return r;
}

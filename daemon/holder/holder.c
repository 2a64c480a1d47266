/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/holder/holder.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/base/answer_time.h"
#include "daemon/base/thread.h"
#include "daemon/holder/job.h"
#include "daemon/holder/unix_diag.h"
#include "daemon/host/fd_message.h"
#include "daemon/host/helper_process.h"

/*
 * UNKNOWN_MAX: the maximum number of different texts that say why a holder is not known. GRACE_NS:
 * how long after its deadline a process may answer before it is killed.
 */
enum { UNKNOWN_MAX = 64 };
#define GRACE_NS (50 * NS_PER_MS)

/* How long to wait for a process that was killed: for one that hangs, it is waited in vain. */
#define END_NS	(50 * NS_PER_MS)
#define STOP_NS (2 * NS_PER_S)

/* The process that looks up holders. */
struct helper {
	int fd; /* socket to the process; -1: it does not run */
	pid_t pid;
	int64_t counted_ns; /* CPU time of the process that was counted */
	struct job *job;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t ended;	    /* a call of holder_find() has ended */
	bool is_busy;		    /* a call of holder_find() is at work: it has the turn */
	struct helper helper;	    /* of the call that has the turn, like `left` */
	pid_t left;		    /* a process that was killed, but has not ended yet; 0: none */
	int diag_fd;		    /* see holder_diag_take(); -1: none */
	char *unknown[UNKNOWN_MAX]; /* texts that answers point to; never freed */
} state = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.ended = PTHREAD_COND_INITIALIZER,
	.helper = { .fd = -1 },
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

/* Makes the memory for jobs, and sends it to the process. */
static int job_share(struct helper *helper)
{
	_cleanup_(closep) int fd = memfd_create(HOLDER_PROCESS_NAME, MFD_CLOEXEC);
	const int fds[] = { fd, state.diag_fd };
	void *job;

	if (fd < 0 || ftruncate(fd, sizeof(*helper->job)) < 0)
		return -errno;
	job = mmap(NULL, sizeof(*helper->job), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (job == MAP_FAILED)
		return -errno;
	helper->job = job;
	return fd_message_send(helper->fd, "", 1, fds, state.diag_fd < 0 ? 1 : 2);
}

/* Waits for the process that was killed, at most for a time. The call has the turn. */
static void left_reap(int64_t timeout_ns)
{
	if (state.left &&
	    helper_process_reap_until(state.left, clock_ns(CLOCK_MONOTONIC) + timeout_ns))
		state.left = 0;
}

/* Kills the process. One that hangs is left. */
static void helper_kill(struct helper *helper)
{
	close(helper->fd);
	helper->fd = -1;
	kill(helper->pid, SIGKILL);
	state.left = helper->pid;
	left_reap(END_NS);
}

static void helper_end(struct helper *helper)
{
	if (helper->fd >= 0)
		helper_kill(helper);
	if (helper->job)
		munmap(TAKE(helper->job), sizeof(*helper->job));
}

static int helper_start(struct helper *helper)
{
	static char name[] = HOLDER_PROCESS_NAME;
	int r, fd = helper_process_start("/proc/self/exe", name, &helper->pid);

	if (fd < 0)
		return fd;
	helper->fd = fd;
	helper->counted_ns = 0;
	r = job_share(helper);
	if (r)
		helper_end(helper);
	return r;
}

/* Returns the CPU time that the process has used since it was counted last, and counts it. */
static int64_t helper_count(struct helper *helper)
{
	int64_t ns = 0;
	clockid_t clock;

	if (clock_getcpuclockid(helper->pid, &clock) == 0)
		ns = clock_ns(clock) - helper->counted_ns;
	if (ns <= 0)
		return 0;
	helper->counted_ns += ns;
	helper_process_count((uint64_t)ns);
	return ns;
}

/*
 * Gives the process its job; starts a process if none runs, also in place of one that was killed
 * since its last job. Returns 0 or a negative errno.
 */
static int job_send(struct helper *helper, const struct holder_question *questions, size_t n,
		    int64_t timeout_ns)
{
	int r = -EPIPE;

	for (int i = 0; i < 2 && r; i++) {
		struct job *job;

		r = helper->fd < 0 ? helper_start(helper) : 0;
		if (r)
			return r;
		job = helper->job;
		job->n = n;
		memcpy(job->questions, questions, n * sizeof(*questions));
		atomic_store(&job->n_done, 0);
		job->deadline_ns = clock_ns(CLOCK_MONOTONIC) + timeout_ns;
		r = fd_message_send(helper->fd, "", 1, NULL, 0);
		if (r)
			helper_end(helper);
	}
	return r;
}

/* Waits until the job is done. Returns 0, or a negative errno if it is not by the deadline. */
static int job_wait(const struct helper *helper, int64_t until_ns)
{
	char done;
	int r = helper_process_wait(helper->fd, until_ns);

	if (r)
		return r;
	return fd_message_receive(helper->fd, &done, 1, NULL, 0) == 1 ? 0 : -EPIPE;
}

/* Returns a text that lives as long as the daemon; the call has the turn. */
static const char *unknown_keep(const char *text)
{
	/* Callers compare these by their addresses. */
	if (strcmp(text, holder_went_on) == 0)
		return holder_went_on;
	if (strcmp(text, holder_took_too_long) == 0)
		return holder_took_too_long;
	for (size_t i = 0; i < UNKNOWN_MAX; i++) {
		if (!state.unknown[i])
			state.unknown[i] = strndup(text, JOB_UNKNOWN);
		if (!state.unknown[i])
			break;
		if (strcmp(state.unknown[i], text) == 0)
			return state.unknown[i];
	}
	return holder_went_on;
}

/* Copies those of n answers that are there. Returns 0 or a negative errno. */
static int answers_take(struct job *job, size_t n, struct holder_answer *answers)
{
	size_t done = atomic_load(&job->n_done), i;

	for (i = 0; i < done && i < n; i++) {
		struct found found = job->found[i];

		if (found.answer.n > HOLDER_SHOWN)
			return -EPROTO;
		found.object[sizeof(found.object) - 1] = '\0';
		found.unknown[sizeof(found.unknown) - 1] = '\0';
		answers[i] = found.answer;
		answers[i].object = found.has_object ? strdup(found.object) : NULL;
		answers[i].unknown = found.has_unknown ? unknown_keep(found.unknown) : NULL;
		if (found.has_object && !answers[i].object)
			return -ENOMEM;
	}
	return 0;
}

/* Waits until no other call is at work, at most for a time. True if this call may begin. */
static bool turn_take(int64_t timeout_ns)
{
	const int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + timeout_ns;
	bool is_free;

	pthread_mutex_lock(&state.lock);
	while (state.is_busy)
		if (thread_wait_until(&state.ended, &state.lock, until_ns))
			break;
	is_free = !state.is_busy;
	state.is_busy = true;
	pthread_mutex_unlock(&state.lock);
	return is_free;
}

static void turn_give(void)
{
	pthread_mutex_lock(&state.lock);
	state.is_busy = false;
	pthread_cond_broadcast(&state.ended);
	pthread_mutex_unlock(&state.lock);
}

/* Looks up the questions; the call has the turn. */
static int job_make(const struct holder_question *questions, size_t n, int64_t timeout_ns,
		    struct holder_answer *answers, int64_t *cpu_ns_out)
{
	struct helper *helper = &state.helper;
	int r = job_send(helper, questions, n, timeout_ns), late;

	if (r)
		return r;
	late = job_wait(helper, clock_ns(CLOCK_MONOTONIC) + timeout_ns + GRACE_NS);
	*cpu_ns_out = helper_count(helper);
	if (late)
		helper_kill(helper);
	r = answers_take(helper->job, n, answers);
	if (late == -EPIPE && !answers[0].is_known)
		r = -EPIPE;
	if (late || r)
		helper_end(helper);
	return r;
}

int holder_find(const struct holder_question *questions, size_t n, enum holder_use use,
		struct holder_answer *answers, int64_t *cpu_ns_out)
{
	const int64_t timeout_ns =
		use == HOLDER_FOR_WINDOW ? HOLDER_WINDOW_DEADLINE_NS : HOLDER_DEADLINE_NS;
	int64_t cpu_ns = 0;
	int r;

	if (!turn_take(timeout_ns))
		return -EBUSY;
	left_reap(END_NS);
	r = state.left ? -EBUSY
		       : job_make(questions, n < HOLDER_LOOKUPS ? n : HOLDER_LOOKUPS, timeout_ns,
				  answers, &cpu_ns);
	turn_give();
	if (use == HOLDER_FOR_ANSWER)
		answer_time_add(cpu_ns);
	if (cpu_ns_out)
		*cpu_ns_out = cpu_ns;
	return r;
}

void holder_stop(void)
{
	if (!turn_take(0))
		return;
	helper_end(&state.helper);
	left_reap(STOP_NS);
	turn_give();
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/base/answer_time.h"

#include <pthread.h>
#include <sys/wait.h>

#include "common/base.h"
#include "daemon/base/cpu_time.h"

static struct {
	pthread_mutex_t lock;
	struct answer_time *first; /* the threads that are at work */
	int64_t ended_ns;	   /* CPU time of the work that has ended */
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

void answer_time_begin(struct answer_time *work)
{
	*work = (struct answer_time){ .begun_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) };
	/* The clock of this thread for others, too. For the calling thread, there is always one. */
	pthread_getcpuclockid(pthread_self(), &work->clock);
	pthread_mutex_lock(&state.lock);
	work->next = state.first;
	if (work->next)
		work->next->previous = work;
	state.first = work;
	pthread_mutex_unlock(&state.lock);
}

void answer_time_end(struct answer_time *work)
{
	pthread_mutex_lock(&state.lock);
	state.ended_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - work->begun_ns;
	if (work->previous)
		work->previous->next = work->next;
	else
		state.first = work->next;
	if (work->next)
		work->next->previous = work->previous;
	pthread_mutex_unlock(&state.lock);
}

void answer_time_add(int64_t ns)
{
	pthread_mutex_lock(&state.lock);
	state.ended_ns += ns;
	pthread_mutex_unlock(&state.lock);
}

pid_t answer_time_wait(pid_t pid, int *status_out, int options)
{
	struct rusage usage = {};
	pid_t ended = wait4(pid, status_out, options, &usage);

	if (ended <= 0)
		return ended;
	answer_time_add(rusage_ns(&usage));
	return ended;
}

uint64_t answer_time_ns(void)
{
	const struct answer_time *work;
	int64_t ns;

	pthread_mutex_lock(&state.lock);
	ns = state.ended_ns;
	for (work = state.first; work; work = work->next)
		ns += clock_ns(work->clock) - work->begun_ns;
	pthread_mutex_unlock(&state.lock);
	return (uint64_t)ns;
}

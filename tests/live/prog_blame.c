// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_blame: threads that wait for others, and that others know who is to blame for. Each line
 * "blame" has a thread that slept, who held it up, and in `sure` whether it was that one for three
 * quarters of the sleep at least. Each line "queued" has one that waited for a mutex that several
 * had in turn and, in `sure`, whether each had it for less than half of the time. Each line
 * "event" has one for which at most one other is to blame. The line "napped" has one that only
 * timers woke, while others computed or made system calls on the same CPU.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "prog.h"

enum { ROUNDS = 5, NAPS = 300, QUEUE = 5, HELD_NS = 60000000, NAP_NS = 1500000 };

struct sleeper {
	pthread_t thread;
	pid_t tid;
	int64_t since_ns;  /* it has not slept before */
	int64_t asleep_ns; /* it was asleep at this time */
	int64_t until_ns;
	bool has_alarm; /* of a child */
	/* of a pipe: it waits for a byte from one end, and writes it to the other */
	int from, to;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int stopped;

static void sleeper_begin(struct sleeper *self)
{
	self->since_ns = now_ns(CLOCK_MONOTONIC);
	__atomic_store_n(&self->tid, gettid(), __ATOMIC_RELEASE);
}

/* Waits until a thread sleeps. */
static void await_sleep(pid_t pid, pid_t tid)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	while (state != 'S') {
		FILE *f = fopen(path, "re");

		need(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1, path);
		fclose(f);
		sched_yield();
	}
}

/* Starts a thread, and waits until it sleeps. */
static void sleeper_start(struct sleeper *sleeper, void *(*run)(void *))
{
	errno = pthread_create(&sleeper->thread, NULL, run, sleeper);
	need(errno == 0, "pthread_create");
	while (!__atomic_load_n(&sleeper->tid, __ATOMIC_ACQUIRE))
		sched_yield();
	await_sleep(getpid(), sleeper->tid);
	sleeper->asleep_ns = now_ns(CLOCK_MONOTONIC);
}

/* Says that `by` was to blame until done_ns, for the sleeper who waited no later than `last`. */
static void blame(const struct sleeper *sleeper, const struct sleeper *last, pid_t by,
		  int64_t done_ns)
{
	int64_t ns = sleeper->until_ns - sleeper->since_ns, blamed_ns = done_ns - last->asleep_ns;

	printf("blame sleeper=%d by=%d ns=%lld sure=%d\n", sleeper->tid, by, (long long)blamed_ns,
	       blamed_ns * 4 > ns * 3);
}

static void *lock_main(void *arg)
{
	struct sleeper *self = arg;

	sleeper_begin(self);
	pthread_mutex_lock(&mutex);
	self->until_ns = now_ns(CLOCK_MONOTONIC);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

/* Two threads wait for a mutex: the first one that gets it hands it on. */
static void convoy(void)
{
	struct sleeper first = { 0 }, last = { 0 };
	int64_t done_ns;

	pthread_mutex_lock(&mutex);
	sleeper_start(&first, lock_main);
	sleeper_start(&last, lock_main);
	raw_nanosleep(HELD_NS);
	done_ns = now_ns(CLOCK_MONOTONIC);
	pthread_mutex_unlock(&mutex);
	pthread_join(first.thread, NULL);
	pthread_join(last.thread, NULL);
	blame(&first, &last, gettid(), done_ns);
	blame(&last, &last, gettid(), done_ns);
}

static void *queue_main(void *arg)
{
	struct sleeper *self = arg;

	sleeper_begin(self);
	pthread_mutex_lock(&mutex);
	self->until_ns = now_ns(CLOCK_MONOTONIC);
	raw_nanosleep(HELD_NS / 2);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static int compare_ns(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

	return (a > b) - (a < b);
}

/* Several threads have a mutex in turn: none of them is to blame for the wait of the last one. */
static void queue(void)
{
	struct sleeper sleepers[QUEUE] = { 0 }, *last = sleepers;
	int64_t got_ns[QUEUE + 1], most_ns = 0;

	pthread_mutex_lock(&mutex);
	for (int i = 0; i < QUEUE; i++)
		sleeper_start(&sleepers[i], queue_main);
	got_ns[0] = sleepers[0].since_ns;
	raw_nanosleep(HELD_NS / 2);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < QUEUE; i++) {
		pthread_join(sleepers[i].thread, NULL);
		last = sleepers[i].until_ns > last->until_ns ? &sleepers[i] : last;
		got_ns[i + 1] = sleepers[i].until_ns;
	}
	qsort(got_ns, QUEUE + 1, sizeof(*got_ns), compare_ns);
	/* A turn begins before it is seen to, and ends when the next one begins. */
	for (int i = 2; i <= QUEUE; i++)
		if (got_ns[i] - got_ns[i - 2] > most_ns)
			most_ns = got_ns[i] - got_ns[i - 2];
	printf("queued sleeper=%d sure=%d\n", last->tid,
	       2 * most_ns < last->until_ns - last->since_ns);
}

static void *relay_main(void *arg)
{
	struct sleeper *self = arg;
	char c;

	sleeper_begin(self);
	need(raw_syscall(SYS_read, self->from, (long)&c, 1, 0) == 1, "read");
	self->until_ns = now_ns(CLOCK_MONOTONIC);
	need(self->to < 0 || raw_syscall(SYS_write, self->to, (long)&c, 1, 0) == 1, "write");
	return NULL;
}

/* A byte goes through two pipes, from this thread, which comes late with it. */
static void relay(void)
{
	struct sleeper relay, sink;
	int near[2], far[2];
	int64_t done_ns;

	need(pipe(near) == 0 && pipe(far) == 0, "pipe");
	relay = (struct sleeper){ .from = near[0], .to = far[1] };
	sink = (struct sleeper){ .from = far[0], .to = -1 };
	sleeper_start(&relay, relay_main);
	sleeper_start(&sink, relay_main);
	raw_nanosleep(HELD_NS);
	done_ns = now_ns(CLOCK_MONOTONIC);
	need(raw_syscall(SYS_write, near[1], (long)"x", 1, 0) == 1, "write");
	pthread_join(relay.thread, NULL);
	pthread_join(sink.thread, NULL);
	blame(&relay, &sink, gettid(), done_ns);
	blame(&sink, &sink, gettid(), done_ns);
	for (int i = 0; i < 2; i++)
		need(close(near[i]) == 0 && close(far[i]) == 0, "close");
}

static void *write_main(void *arg)
{
	struct sleeper *self = arg;

	sleeper_begin(self);
	need(raw_syscall(SYS_write, self->to, (long)"x", 1, 0) == 1, "write");
	return NULL;
}

/*
 * Who writes to a pipe is a new thread, to which the daemon may give the place of one that a lock
 * had held up.
 */
static void successor(void)
{
	struct sleeper reader = { .to = -1 }, waiter = { 0 }, writer = { 0 };
	int ends[2];

	need(pipe(ends) == 0, "pipe");
	reader.from = ends[0];
	writer.to = ends[1];
	sleeper_start(&reader, relay_main);
	pthread_mutex_lock(&mutex);
	sleeper_start(&waiter, lock_main);
	raw_nanosleep(HELD_NS);
	pthread_mutex_unlock(&mutex);
	pthread_join(waiter.thread, NULL);
	errno = pthread_create(&writer.thread, NULL, write_main, &writer);
	need(errno == 0, "pthread_create");
	pthread_join(writer.thread, NULL);
	pthread_join(reader.thread, NULL);
	printf("blame sleeper=%d by=%d ns=%d sure=1\n", reader.tid, writer.tid, HELD_NS);
	need(close(ends[0]) == 0 && close(ends[1]) == 0, "close");
}

/* Waits for events for a time, answers what comes, and then writes to a pipe of its own accord. */
static void *loop_main(void *arg)
{
	struct sleeper *self = arg;
	struct pollfd event = { .fd = self->from, .events = POLLIN };
	char c;

	sleeper_begin(self);
	need(raw_syscall(SYS_poll, (long)&event, 1, -1, 0) == 1, "poll");
	need(raw_syscall(SYS_read, self->from, (long)&c, 1, 0) == 1, "read");
	raw_nanosleep(HELD_NS / 3);
	need(raw_syscall(SYS_write, self->to, (long)"x", 1, 0) == 1, "write");
	return NULL;
}

/* Who sends an event is not to blame for what another thread does later. */
static void events(void)
{
	struct sleeper loop, reader;
	int event[2], answer[2];

	need(pipe(event) == 0 && pipe(answer) == 0, "pipe");
	loop = (struct sleeper){ .from = event[0], .to = answer[1] };
	reader = (struct sleeper){ .from = answer[0], .to = -1 };
	sleeper_start(&loop, loop_main);
	sleeper_start(&reader, relay_main);
	raw_nanosleep(HELD_NS);
	need(raw_syscall(SYS_write, event[1], (long)"x", 1, 0) == 1, "write");
	pthread_join(loop.thread, NULL);
	pthread_join(reader.thread, NULL);
	printf("event sleeper=%d by=%d\n", reader.tid, loop.tid);
	for (int i = 0; i < 2; i++)
		need(close(event[i]) == 0 && close(answer[i]) == 0, "close");
}

/* Waits for a child that sleeps and exits or, if it has an alarm, computes until that kills it. */
static void *parent_main(void *arg)
{
	struct sleeper *self = arg;
	const struct itimerval soon = { .it_value.tv_usec = 10000 };
	pid_t child, own = getpid();

	sleeper_begin(self);
	child = fork();
	need(child >= 0, "fork");
	if (!child) {
		await_sleep(own, self->tid);
		raw_nanosleep(HELD_NS);
		if (self->has_alarm)
			need(setitimer(ITIMER_REAL, &soon, NULL) == 0, "setitimer");
		while (self->has_alarm)
			;
		_exit(0);
	}
	need(waitpid(child, NULL, __WALL) == child, "waitpid");
	printf("blame sleeper=%d by=%d ns=%d sure=1\n", self->tid, child, HELD_NS);
	return NULL;
}

static void *nap_main(void *arg)
{
	struct sleeper *self = arg;

	sleeper_begin(self);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	for (int i = 0; i < NAPS; i++)
		raw_nanosleep(NAP_NS);
	return NULL;
}

static void *compute_main(void *arg)
{
	while (!__atomic_load_n(&stopped, __ATOMIC_ACQUIRE))
		;
	return NULL;
}

static void *call_main(void *arg)
{
	while (!__atomic_load_n(&stopped, __ATOMIC_ACQUIRE))
		raw_syscall(SYS_getppid, 0, 0, 0, 0);
	return NULL;
}

/*
 * A thread that a lock has held up once is then woken by timers only, in the middle of what others
 * do.
 */
static void naps(void)
{
	struct sleeper sleeper = { 0 };
	pthread_t compute, call;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	need(sched_setaffinity(0, sizeof(one), &one) == 0, "sched_setaffinity");
	need(!pthread_create(&compute, NULL, compute_main, NULL), "pthread_create");
	need(!pthread_create(&call, NULL, call_main, NULL), "pthread_create");
	pthread_mutex_lock(&mutex);
	sleeper_start(&sleeper, nap_main);
	raw_nanosleep(HELD_NS);
	pthread_mutex_unlock(&mutex);
	pthread_join(sleeper.thread, NULL);
	__atomic_store_n(&stopped, 1, __ATOMIC_RELEASE);
	pthread_join(compute, NULL);
	pthread_join(call, NULL);
	printf("napped sleeper=%d count=%d\n", sleeper.tid, NAPS);
}

int main(void)
{
	struct sleeper parent;

	wait_for_start();
	for (int i = 0; i < ROUNDS; i++) {
		convoy();
		queue();
		relay();
		successor();
		events();
		parent = (struct sleeper){ .has_alarm = i & 1 };
		need(!pthread_create(&parent.thread, NULL, parent_main, &parent), "pthread_create");
		pthread_join(parent.thread, NULL);
	}
	naps();
	wait_for_end();
	return 0;
}

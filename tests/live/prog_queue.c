// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_queue: threads of real-time priorities, so that nothing else comes between them. On the
 * first CPU a "hog" computes while a "waiter" of less priority is ready there, and then runs. Then
 * this is done again with another waiter, but the hog moves it to the second CPU, where it runs at
 * once, before a "victim" of still less priority. A third time, a thread that runs for a moment
 * only comes between the hog and the waiter.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

#include "prog.h"

enum { STAYED = 5 };
enum { VICTIM_PRIORITY = 1, WAITER_PRIORITY, BRIEF_PRIORITY, HOG_PRIORITY };

struct actor {
	pthread_t thread;
	pid_t tid;
	int go;
	size_t cpu;
	struct actor *waiter; /* of a hog */
	struct actor *brief;  /* of a hog: runs between it and the waiter; or NULL */
	size_t to_cpu;	      /* of a hog: where it moves the waiter */
	int64_t ns;	      /* of a hog: for how long its waiter was ready at least */
};

static int stopped;

static void await(int *word)
{
	while (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
		raw_futex_wait(word, 0);
}

static void set(int *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	raw_futex_wake(word, 1);
}

static void pin(pid_t tid, size_t cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	need(sched_setaffinity(tid, sizeof(cpus), &cpus) == 0, "sched_setaffinity");
}

static void actor_begin(struct actor *self)
{
	pin(0, self->cpu);
	__atomic_store_n(&self->tid, gettid(), __ATOMIC_RELEASE);
	await(&self->go);
}

static void *waiter_main(void *arg)
{
	actor_begin(arg);
	__atomic_store_n(&stopped, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *victim_main(void *arg)
{
	actor_begin(arg);
	while (!__atomic_load_n(&stopped, __ATOMIC_ACQUIRE))
		;
	return NULL;
}

static void *brief_main(void *arg)
{
	int64_t begin_ns;

	actor_begin(arg);
	begin_ns = now_ns(CLOCK_MONOTONIC);
	while (now_ns(CLOCK_MONOTONIC) - begin_ns < 2000000)
		;
	return NULL;
}

static void *hog_main(void *arg)
{
	struct actor *self = arg;
	int64_t begin_ns;

	actor_begin(self);
	set(&self->waiter->go);
	if (self->brief)
		set(&self->brief->go);
	begin_ns = now_ns(CLOCK_MONOTONIC);
	while (self->ns < 50000000)
		self->ns = now_ns(CLOCK_MONOTONIC) - begin_ns;
	if (self->to_cpu != self->cpu)
		pin(self->waiter->tid, self->to_cpu);
	return NULL;
}

static void actor_start(struct actor *actor, void *(*run)(void *), int priority)
{
	struct sched_param param = { .sched_priority = priority };
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
	pthread_attr_setschedparam(&attr, &param);
	errno = pthread_create(&actor->thread, &attr, run, actor);
	need(errno == 0, "pthread_create");
	while (!__atomic_load_n(&actor->tid, __ATOMIC_ACQUIRE))
		sched_yield();
}

/*
 * Runs a round in which the waiter goes from the CPU `from` to the CPU `to`; with has_brief, one in
 * which another thread comes between it and the hog.
 */
static void play(const char *name, size_t from, size_t to, bool has_brief)
{
	struct actor victim = { .cpu = to }, waiter = { .cpu = from }, brief = { .cpu = from };
	struct actor hog = { .cpu = from, .waiter = &waiter, .to_cpu = to };

	__atomic_store_n(&stopped, 0, __ATOMIC_RELEASE);
	actor_start(&victim, victim_main, VICTIM_PRIORITY);
	actor_start(&waiter, waiter_main, WAITER_PRIORITY);
	if (has_brief) {
		actor_start(&brief, brief_main, BRIEF_PRIORITY);
		hog.brief = &brief;
	}
	actor_start(&hog, hog_main, HOG_PRIORITY);
	set(&victim.go);
	set(&hog.go);
	pthread_join(hog.thread, NULL);
	if (has_brief)
		pthread_join(brief.thread, NULL);
	pthread_join(waiter.thread, NULL);
	pthread_join(victim.thread, NULL);
	printf("%s waiter=%d hog=%d victim=%d ns=%lld\n", name, waiter.tid, hog.tid, victim.tid,
	       (long long)hog.ns);
}

int main(void)
{
	size_t first = 0, second;
	cpu_set_t cpus;

	need(sched_getaffinity(0, sizeof(cpus), &cpus) == 0, "sched_getaffinity");
	while (!CPU_ISSET(first, &cpus))
		first++;
	for (second = first + 1; second < CPU_SETSIZE && !CPU_ISSET(second, &cpus);)
		second++;
	wait_for_start();
	/* The kernel may let a thread without a real-time priority run within a round. */
	for (int i = 0; i < STAYED; i++)
		play("stayed", first, first, false);
	play("shared", first, first, true);
	if (second < CPU_SETSIZE)
		play("moved", first, second, false);
	wait_for_end();
	return 0;
}

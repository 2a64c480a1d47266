// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_queue: threads of real-time priorities, so that nothing else comes between them. On the
 * first CPU a "hog" computes while a "waiter" of less priority is ready there, and then runs. Then
 * this is done again with another waiter, but the hog moves it to the second CPU, where it runs at
 * once, before a "victim" of still less priority.
 */
#include <pthread.h>
#include <sched.h>

#include "prog.h"

enum { VICTIM_PRIORITY = 1, WAITER_PRIORITY, HOG_PRIORITY };

struct actor {
	pthread_t thread;
	pid_t tid;
	int go;
	size_t cpu;
	struct actor *waiter; /* of a hog */
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

static void *hog_main(void *arg)
{
	struct actor *self = arg;
	int64_t begin_ns;

	actor_begin(self);
	set(&self->waiter->go);
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

/* Runs a round in which the waiter goes from the CPU `from` to the CPU `to`. */
static void play(const char *name, size_t from, size_t to)
{
	struct actor victim = { .cpu = to }, waiter = { .cpu = from };
	struct actor hog = { .cpu = from, .waiter = &waiter, .to_cpu = to };

	__atomic_store_n(&stopped, 0, __ATOMIC_RELEASE);
	actor_start(&victim, victim_main, VICTIM_PRIORITY);
	actor_start(&waiter, waiter_main, WAITER_PRIORITY);
	actor_start(&hog, hog_main, HOG_PRIORITY);
	set(&victim.go);
	set(&hog.go);
	pthread_join(hog.thread, NULL);
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
	play("stayed", first, first);
	if (second < CPU_SETSIZE)
		play("moved", first, second);
	wait_for_end();
	return 0;
}

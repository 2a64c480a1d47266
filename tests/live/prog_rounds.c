// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_rounds [CPU]: waits and computes in the same way until its input ends. The thread "rounds"
 * waits short (0.5 ms) and long (20 ms) in turn and then wakes the thread "partner" by a pipe;
 * "deep" waits in state D, "nested" below many frames; two threads "spins" share one CPU, the last
 * or the one given. Prints "thread NAME tid=N" for each, then "ready".
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "prog.h"

#define SHORT_NS  500000
#define LONG_NS	  20000000
#define NESTED_NS 10000000

enum { DEPTH = 60 };

static int pipe_fds[2];
static int cpu;
static int said;

static void say(const char *name)
{
	prctl(PR_SET_NAME, name);
	printf("thread %s tid=%d\n", name, gettid());
	fflush(stdout);
	__atomic_fetch_add(&said, 1, __ATOMIC_RELEASE);
}

static NAMED void wait_short(void)
{
	raw_nanosleep(SHORT_NS);
}

static NAMED void wait_long(void)
{
	raw_nanosleep(LONG_NS);
}

static NAMED void wake_partner(void)
{
	need(raw_syscall(SYS_write, pipe_fds[1], (long)"x", 1, 0) == 1, "write");
}

static NAMED void wait_for_partner(void)
{
	char c;

	need(raw_syscall(SYS_read, pipe_fds[0], (long)&c, 1, 0) == 1, "read");
}

/* Waits in state D: the parent of a vfork does so until the child has exited. */
static NAMED void wait_in_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		raw_nanosleep(NESTED_NS);
		_exit(0);
	}
	need(pid > 0 && waitpid(pid, NULL, 0) == pid, "vfork");
}

static NAMED int wait_nested(int depth)
{
	if (depth == 0)
		return (int)raw_nanosleep(NESTED_NS);
	return wait_nested(depth - 1) + 1;
}

static NAMED void compute_alone(void)
{
	int64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + LONG_NS;

	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void *partner_main(void *arg)
{
	say("partner");
	for (;;)
		wait_for_partner();
	return arg;
}

static void *deep_main(void *arg)
{
	say("deep");
	for (;;)
		wait_in_vfork();
	return arg;
}

static void *nested_main(void *arg)
{
	say("nested");
	for (;;)
		wait_nested(DEPTH);
	return arg;
}

static void *spins_main(void *arg)
{
	cpu_set_t set;

	say("spins");
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	need(pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0, "affinity");
	for (;;)
		compute_alone();
	return arg;
}

static void *rounds_main(void *arg)
{
	say("rounds");
	for (;;) {
		wait_short();
		wait_long();
		wake_partner();
	}
	return arg;
}

int main(int argc, char **argv)
{
	void *(*const mains[])(void *) = { partner_main, deep_main,  nested_main,
					   spins_main,	 spins_main, rounds_main };
	const size_t threads = sizeof(mains) / sizeof(mains[0]);
	pthread_t thread;
	char c;

	cpu = (int)arg_number(argc, argv, 1, sysconf(_SC_NPROCESSORS_ONLN) - 1);
	need(pipe(pipe_fds) == 0, "pipe");
	for (size_t i = 0; i < threads; i++)
		need(pthread_create(&thread, NULL, mains[i], NULL) == 0, "pthread_create");
	while (__atomic_load_n(&said, __ATOMIC_ACQUIRE) < (int)threads)
		usleep(1000);
	printf("ready pid=%d\n", getpid());
	fflush(stdout);
	while (raw_syscall(SYS_read, 0, (long)&c, 1, 0) == 1)
		;
	return 0;
}

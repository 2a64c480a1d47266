// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_wakers ROUNDS: makes waits whose wakers are known. The thread "wakes" ends those of
 * "by_futex", "by_pipe" and "by_signal", each in a function of its own; "by_timer" sleeps; each of
 * "link1" to "link4" writes to the next one's pipe when it is woken, and a timer wakes the first.
 * "one" and "two" wake "by_two" in turn, with equal stacks.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#include "prog.h"

#define PAUSE_NS 3000000

enum { LINKS = 4, MAINS = 5 };

static long rounds;
static int turn;
static int pipe_fds[2], link_fds[LINKS][2], two_fds[2], turn_fds[2][2];
static pthread_t by_signal;

static NAMED void wait_for_futex(int seen)
{
	while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) == seen)
		raw_futex_wait(&turn, seen);
}

static NAMED void wait_for_pipe(int fd)
{
	char c;

	need(raw_syscall(SYS_read, fd, (long)&c, 1, 0) == 1, "read");
}

static NAMED void wait_for_signal(const sigset_t *set)
{
	siginfo_t info;

	/* Real-time signals are queued: none is lost if two arrive before the first is taken. */
	while (raw_syscall(SYS_rt_sigtimedwait, (long)set, (long)&info, 0, 8) != SIGRTMIN)
		;
}

static NAMED void wait_for_timer(void)
{
	raw_nanosleep(PAUSE_NS);
}

static NAMED void wake_by_futex(void)
{
	__atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE);
	raw_futex_wake(&turn, 1);
}

static NAMED void wake_by_pipe(int fd)
{
	need(raw_syscall(SYS_write, fd, (long)"x", 1, 0) == 1, "write");
}

static NAMED void wake_by_signal(void)
{
	need(pthread_kill(by_signal, SIGRTMIN) == 0, "pthread_kill");
}

static void *futex_main(void *arg)
{
	prctl(PR_SET_NAME, "by_futex");
	for (int i = 0; i < rounds; i++)
		wait_for_futex(i);
	return arg;
}

static void *pipe_main(void *arg)
{
	prctl(PR_SET_NAME, "by_pipe");
	for (long i = 0; i < rounds; i++)
		wait_for_pipe(pipe_fds[0]);
	return arg;
}

static void *signal_main(void *arg)
{
	sigset_t set;

	prctl(PR_SET_NAME, "by_signal");
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	for (long i = 0; i < rounds; i++)
		wait_for_signal(&set);
	return arg;
}

static void *timer_main(void *arg)
{
	prctl(PR_SET_NAME, "by_timer");
	for (long i = 0; i < rounds; i++)
		wait_for_timer();
	return arg;
}

static void *wakes_main(void *arg)
{
	prctl(PR_SET_NAME, "wakes");
	for (long i = 0; i < rounds; i++) {
		wait_for_timer();
		wake_by_futex();
		wait_for_timer();
		wake_by_pipe(pipe_fds[1]);
		wait_for_timer();
		wake_by_signal();
	}
	return arg;
}

/* Runs a link. arg is its index; a timer wakes the first link, and the last one wakes no thread. */
static void *link_main(void *arg)
{
	int place = (int)(intptr_t)arg;
	char name[16];

	snprintf(name, sizeof(name), "link%d", place + 1);
	prctl(PR_SET_NAME, name);
	for (long i = 0; i < rounds; i++) {
		if (place == 0)
			wait_for_timer();
		else
			wait_for_pipe(link_fds[place][0]);
		if (place + 1 < LINKS)
			wake_by_pipe(link_fds[place + 1][1]);
	}
	return arg;
}

/* Lets one of the two, whose index is arg, wake "by_two" each time when it is its turn. */
static void *one_of_two_main(void *arg)
{
	int place = (int)(intptr_t)arg;

	prctl(PR_SET_NAME, place ? "two" : "one");
	for (long i = 0; i < rounds / 2; i++) {
		wait_for_pipe(turn_fds[place][0]);
		wait_for_timer();
		wake_by_pipe(two_fds[1]);
	}
	return arg;
}

static void *by_two_main(void *arg)
{
	prctl(PR_SET_NAME, "by_two");
	for (long i = 0; i < rounds / 2 * 2; i++) {
		wake_by_pipe(turn_fds[i & 1][1]);
		wait_for_pipe(two_fds[0]);
	}
	return arg;
}

int main(int argc, char **argv)
{
	void *(*const mains[MAINS])(void *) = { futex_main, pipe_main, timer_main, wakes_main,
						by_two_main };
	pthread_t threads[MAINS], links[LINKS], two[2];
	sigset_t set;

	rounds = arg_number(argc, argv, 1, 200);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	need(pipe(pipe_fds) == 0 && pipe(two_fds) == 0 && pipe(turn_fds[0]) == 0 &&
		     pipe(turn_fds[1]) == 0,
	     "pipe");
	for (int i = 0; i < LINKS; i++)
		need(pipe(link_fds[i]) == 0, "pipe");
	wait_for_start();
	need(pthread_create(&by_signal, NULL, signal_main, NULL) == 0, "pthread_create");
	for (int i = 0; i < 2; i++)
		need(pthread_create(&two[i], NULL, one_of_two_main, (void *)(intptr_t)i) == 0,
		     "pthread_create");
	for (int i = 0; i < MAINS; i++)
		need(pthread_create(&threads[i], NULL, mains[i], NULL) == 0, "pthread_create");
	for (int i = LINKS - 1; i >= 0; i--)
		need(pthread_create(&links[i], NULL, link_main, (void *)(intptr_t)i) == 0,
		     "pthread_create");
	for (int i = 0; i < MAINS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(two[i], NULL);
	for (int i = 0; i < LINKS; i++)
		pthread_join(links[i], NULL);
	pthread_join(by_signal, NULL);
	printf("waits count=%ld ns=0\n", rounds);
	wait_for_end();
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_threadexec: a thread that is not the main one prints "thread tid=N", waits for a line,
 * sleeps in wait_before, computes in spin_before and execs the program again. It then has the pid
 * and the start time of the main thread, sleeps in wait_after and computes in spin_after, prints
 * "done" and waits for the end of its input.
 */
#include <pthread.h>

#include "prog.h"

enum { WAIT_NS = 50000000, SPIN_NS = 300000000 };

static char *self;

static void spin(void)
{
	int64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + SPIN_NS;

	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static NAMED void wait_before(void)
{
	raw_nanosleep(WAIT_NS);
}

static NAMED void spin_before(void)
{
	spin();
}

static NAMED void wait_after(void)
{
	raw_nanosleep(WAIT_NS);
}

static NAMED void spin_after(void)
{
	spin();
}

static void *thread_main(void *arg)
{
	printf("thread tid=%d\n", gettid());
	wait_for_start();
	wait_before();
	spin_before();
	execv(self, (char *[]){ self, "again", NULL });
	need(0, self);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	self = argv[0];
	if (argc > 1) {
		wait_after();
		spin_after();
		wait_for_end();
		return 0;
	}
	need(!pthread_create(&thread, NULL, thread_main, NULL), "pthread_create");
	pthread_join(thread, NULL);
	return 1;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_sleeper [THREADS]: sleeps for an hour in all its threads (by default only the main thread).
 */
#include <pthread.h>

#include "prog.h"

static NAMED void sleep_for_long(void)
{
	raw_nanosleep(INT64_C(3600) * 1000000000);
}

static void *thread_main(void *arg)
{
	sleep_for_long();
	return arg;
}

int main(int argc, char **argv)
{
	long threads = arg_number(argc, argv, 1, 0);
	pthread_t thread;

	for (long i = 0; i < threads; i++)
		need(pthread_create(&thread, NULL, thread_main, NULL) == 0, "pthread_create");
	printf("ready pid=%d\n", getpid());
	fflush(stdout);
	sleep_for_long();
	return 0;
}

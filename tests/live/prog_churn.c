// SPDX-License-Identifier: GPL-2.0-or-later
/* prog_churn COUNT: creates COUNT threads, eight at a time; each waits a moment and ends. */
#include <pthread.h>

#include "prog.h"

enum { BATCH = 8, STACK_BYTES = 65536 };

static NAMED void churn_wait(void)
{
	raw_nanosleep(1000);
}

static void *thread_main(void *arg)
{
	churn_wait();
	return arg;
}

int main(int argc, char **argv)
{
	long count = arg_number(argc, argv, 1, 1000);
	pthread_t threads[BATCH];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	wait_for_start();
	for (long done = 0; done < count; done += BATCH) {
		for (int i = 0; i < BATCH; i++)
			need(pthread_create(&threads[i], &attr, thread_main, NULL) == 0,
			     "pthread_create");
		for (int i = 0; i < BATCH; i++)
			pthread_join(threads[i], NULL);
	}
	wait_for_end();
	return 0;
}

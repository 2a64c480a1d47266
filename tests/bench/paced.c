// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * paced RATE SECONDS: sleeps RATE times a second, each time for an equal share of the second. That
 * makes twice as many context switches on an otherwise idle host. With a RATE of 5,000 a sleep
 * takes about 200 us, longer than the default min_wait.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

int main(int argc, char **argv)
{
	long rate = argc > 1 ? strtol(argv[1], NULL, 10) : 5000;
	long seconds = argc > 2 ? strtol(argv[2], NULL, 10) : 10;
	struct timespec at;

	if (rate < 1 || rate > 1000000 || seconds < 1)
		return 1;
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	clock_gettime(CLOCK_MONOTONIC, &at);
	for (long i = 0; i < rate * seconds; i++) {
		at.tv_nsec += 1000000000 / rate;
		if (at.tv_nsec >= 1000000000) {
			at.tv_nsec -= 1000000000;
			at.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
	}
	return 0;
}

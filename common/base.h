/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_BASE_H
#define STACKD_COMMON_BASE_H

/*
 * What every C file may need: scope cleanup, hand-over, array sizes, time units.
 * Header only, no state.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define _cleanup_(f)  __attribute__((cleanup(f)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Hands a pointer over: the value, and NULL stays behind. */
#define TAKE(p)                         \
	({                              \
		__typeof__(p) _p = (p); \
		(p) = NULL;             \
		_p;                     \
	})

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

/* The clock in ns; CLOCK_MONOTONIC is what bpf_ktime_get_ns() reads. */
static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

#endif

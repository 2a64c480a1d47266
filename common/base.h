/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_BASE_H
#define STACKD_COMMON_BASE_H

/*
 * Small helpers that any C file may need: cleanup at the end of a scope, sizes of arrays, units of
 * time. Header only, no state.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define _cleanup_(f)  __attribute__((cleanup(f)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Returns the value of a pointer and sets the pointer to NULL, to pass ownership on. */
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

/* Returns the time of a clock in ns. CLOCK_MONOTONIC is the clock of bpf_ktime_get_ns(). */
static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* Returns a time or a duration, in ns, as the kernel and libc take it. */
static inline struct timespec timespec_ns(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/fault/fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>

static _Thread_local bool is_exempt;
static atomic_bool is_armed;
static enum fault_kind armed_kind;
static long first, last;
static atomic_long calls, hits;

void fault_arm(enum fault_kind kind, long nth, long times)
{
	armed_kind = kind;
	first = nth;
	last = nth + times - 1;
	atomic_store(&calls, 0);
	atomic_store(&hits, 0);
	atomic_store(&is_armed, true);
}

long fault_disarm(void)
{
	atomic_store(&is_armed, false);
	return atomic_load(&hits);
}

void fault_exempt(void)
{
	is_exempt = true;
}

static bool fails(enum fault_kind kind, int error)
{
	long call;

	if (is_exempt || !atomic_load(&is_armed) || kind != armed_kind)
		return false;
	call = atomic_fetch_add(&calls, 1) + 1;
	if (call < first || call > last)
		return false;
	atomic_fetch_add(&hits, 1);
	errno = error;
	return true;
}

/* Defines RESULT name(PARAMETERS), which fails with FAILURE and errno = ERROR. */
#define WRAP(kind, error, failure, result, name, parameters, arguments) \
	result __real_##name parameters;                                \
	result __wrap_##name parameters;                                \
	result __wrap_##name parameters                                 \
	{                                                               \
		if (fails(kind, error))                                 \
			return failure;                                 \
		return __real_##name arguments;                         \
	}

WRAP(FAULT_MEMORY, ENOMEM, NULL, void *, malloc, (size_t size), (size))
WRAP(FAULT_MEMORY, ENOMEM, NULL, void *, calloc, (size_t n, size_t size), (n, size))
WRAP(FAULT_MEMORY, ENOMEM, NULL, void *, realloc, (void *p, size_t size), (p, size))
WRAP(FAULT_MEMORY, ENOMEM, NULL, char *, strdup, (const char *text), (text))
WRAP(FAULT_MEMORY, ENOMEM, NULL, char *, strndup, (const char *text, size_t n), (text, n))
WRAP(FAULT_ACCEPT, EMFILE, -1, int, accept4,
     (int fd, struct sockaddr *address, socklen_t *len, int flags), (fd, address, len, flags))

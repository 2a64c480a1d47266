/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_NOTES_H
#define STACKD_DAEMON_QUERY_NOTES_H

/*
 * What the reader of an answer has to know to read its numbers right: in go the filter and what
 * the merge found, out come sentences. Strings are the arena's. Any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "daemon/session/filter.h"
#include "proto/wire.h"

struct notes_facts {
	int64_t min_wait_ns;  /* shorter waits have no stack, no state and no length of their own */
	uint64_t short_waits; /* of the threads asked for */
	const char *unseen;   /* of those asked for, as a sentence; NULL: all were seen */
	const char *unread;   /* user stacks that are not read, and why; NULL or empty: none */
	bool has_estimates;   /* of the time of waits within the filter's edges */
	bool open_only;	      /* waits that go on: each is known exactly */
	bool is_late;	      /* the newest window could not be waited for */
	uint64_t merged;      /* windows from disk that are several made one */
	uint64_t bad;	      /* windows on disk that could not be read */
	int kernel_names_error; /* 0, or the negative errno of reading them */
};

/* 0 or -ENOMEM. */
int notes_make(struct arena *arena, const struct filter *filter, const struct notes_facts *facts,
	       struct wire_strs *out);

/* Adds n notes, whose strings are borrowed, to the end of the list. 0, or -ENOMEM with *notes
 * unchanged. */
int notes_append(struct arena *arena, struct wire_strs *notes, const char *const *more, size_t n);

#endif

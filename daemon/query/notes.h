/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_NOTES_H
#define STACKD_DAEMON_QUERY_NOTES_H

/*
 * Writes the notes of an answer: sentences that a reader needs in order to read its numbers
 * right, such as "waits under 100 us are left out: their state is not recorded". Takes the filter
 * and facts about the data. Strings are the arena's or static. No state; any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "daemon/session/filter.h"
#include "proto/wire.h"

struct notes_facts {
	int64_t min_wait_ns;  /* shorter waits are recorded without stack, state and length */
	uint64_t short_waits; /* number of such waits of the threads that the filter selects */
	const char *unseen;   /* which ids of the filter no window has; NULL: all were found */
	const char *unread; /* which user stacks could not be read, and why; NULL or empty: none */
	bool has_estimates; /* the time of some rows within the filter's lengths is estimated */
	bool open_only;	    /* only open waits, whose length is known exactly */
	bool is_late;	    /* the open window did not end in time, so the newest data is missing */
	uint64_t merged;    /* number of windows from disk that were combined from several */
	uint64_t bad;	    /* number of windows on disk that could not be read */
	int kernel_names_error; /* 0, or the negative errno of reading the kernel's names */
};

/* Sets *out to the notes that apply, most important first. 0 or -ENOMEM. */
int notes_make(struct arena *arena, const struct filter *filter, const struct notes_facts *facts,
	       struct wire_strs *out);

/* Adds n notes, whose strings are borrowed, to the end of the list. 0, or -ENOMEM with *notes
 * unchanged. */
int notes_append(struct arena *arena, struct wire_strs *notes, const char *const *more, size_t n);

#endif

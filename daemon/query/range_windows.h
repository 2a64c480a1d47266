/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_RANGE_WINDOWS_H
#define STACKD_DAEMON_QUERY_RANGE_WINDOWS_H

/*
 * History of memory and disk as one: in goes a range, out come its windows, those on disk to be
 * loaded when they are looked at, and what of the range is covered and why the rest is not. The
 * answer owns what is read. Called on a worker thread.
 */

#include <stdint.h>

#include "daemon/query/answer.h"
#include "daemon/store/entry.h"
#include "daemon/store/store.h"

/* More gaps than this are not told one by one. */
enum { QUERY_GAPS_MAX = 1024 };

/*
 * As history_range(), of answer->session, with what is on disk before it. What cannot be read is
 * left out.
 */
int query_history_range(struct recorder *recorder, struct answer *answer, int64_t since_ns,
			int64_t until_ns, struct history_list *out);

/* Those after the range in which its waits may have ended; on disk not further than 2 min on. */
int query_history_later(struct recorder *recorder, struct answer *answer, int64_t until_ns,
			struct history_list *out);

/* The newest window that began before that time since the epoch. 0, -ENOENT or -ENOMEM. */
int query_history_before(struct recorder *recorder, struct answer *answer, int64_t at_ns,
			 struct store_entry *out);

/* The answer's look into the store; NULL when there is nothing to look into. */
struct store_reader *query_reader(struct recorder *recorder, struct answer *answer);

/* This run of stackd, as the store numbers them; 0 where it does not. */
uint64_t query_run(struct recorder *recorder);

/* The store's stats; of one that is only served what is there is counted now. */
void query_store_stats(struct recorder *recorder, struct answer *answer, struct store_stats *out);

struct query_coverage {
	struct wire_gaps gaps;
	int64_t used_start_ns; /* what was asked for, where no window could be read */
	int64_t used_end_ns;
	int64_t covered_ns;
	size_t windows; /* that could be read */
	size_t merged;	/* of these, longer ones made of several */
	size_t bad;	/* that could not */
};

/* Of the windows as they turned out to be: after they were looked at. 0 or -ENOMEM. */
int query_coverage(struct recorder *recorder, struct answer *answer, int64_t since_ns,
		   int64_t until_ns, struct query_coverage *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_SERVE_HEADERS_H
#define STACKD_FLEET_SERVE_HEADERS_H

/*
 * The headers of windows: which windows of which hosts a fleet has in a range, and what is missing.
 * Each window counts once, even if it was sent twice. Used by the thread that makes an answer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

struct arena;
struct fleet_config;
struct shards;
struct text;

/* The most headers that one answer reads. */
enum { HEADERS_MAX = 200000 };

/* The header of one window, or the reason why a host has none. */
struct header {
	const char *host;
	const char *boot;
	int64_t start;
	int64_t end;
	uint64_t attempt; /* tells apart two inserts of one window */
	bool is_gap;	  /* no window, and `reason` says why */
	bool is_double;	  /* an earlier insert has this window: its rows must not count */
	bool is_outside;  /* it belongs to another slice */
	size_t shard;
	const char *reason;
	const char *hook;
	int64_t seq, rows, of_rows, min_wait_ns, sample_below_ns, period_ns;
	struct wire_totals totals;
	int64_t idle_threads;
	struct wire_losts lost;
};

/* A host that the question is about. */
struct header_host {
	const char *name;
	size_t first, n; /* its headers */
	int64_t last;	 /* the start of its last window; -1: it has none */
	int64_t seen;	 /* what its clock said when it last told about itself; 0: not known */
};

struct header_question {
	const char *probe;
	const char *table;
	int64_t since, until;
	const struct wire_strs *globs; /* of host names; empty: all hosts */
	/* a slice has the windows whose middle lies in this span; NULL: the range is no slice */
	const struct wire_span *middles;
	/*
	 * for each host, one header stands for all of its windows: from the start of the first one
	 * to the end of the last one, `seq` is their number and `period_ns` the length of the
	 * longest
	 */
	bool is_summed;
};

struct headers {
	struct header *v; /* by host, then by start */
	size_t n;
	struct header_host *hosts; /* by name; also those that are known and have no window */
	size_t n_hosts;
	/* of hosts that sent something lately: only `host` is set, and `end` to its clock then */
	struct header *expected;
	size_t n_expected;
	size_t n_windows;
	size_t n_double;
};

/* True if the header is of a window whose rows count. */
static inline bool header_counts(const struct header *header)
{
	return !header->is_gap && !header->is_double && !header->is_outside;
}

/* Returns the time in the middle of a window, by which it belongs to a slice. */
static inline int64_t header_middle(const struct header *header)
{
	return header->start + (header->end - header->start) / 2;
}

/*
 * Returns by how much the clock of a host is ahead of that of the gateway, or was when it last told
 * about itself: that may be minutes ago, so it is more by now. 0: it is not ahead.
 */
int64_t headers_host_ahead(const struct header_host *host, int64_t now);

/* True if the name is or matches one of the globs, or if there are none. */
bool headers_host_matches(const struct wire_strs *globs, const char *name);

/* Returns the name of the table with the windows that suit a range of this length. */
const char *headers_table(int64_t length_ns, bool is_one_host);

/*
 * Reads the headers of all windows that overlap [since, until) from the shards that answer. *out
 * lives in the arena. Returns 0, -E2BIG if there are too many, or another negative errno.
 */
int headers_read(struct shards *shards, const struct fleet_config *config,
		 const struct header_question *question, struct arena *arena, struct headers *out);

/*
 * Forgets what came from shards that have failed since, and finds doubles and hosts again. Returns
 * 0 or -ENOMEM.
 */
int headers_settle(struct headers *headers, const struct shards *shards,
		   const struct header_question *question, struct arena *arena);

/*
 * Sets *out to when the oldest window of these hosts that ended in the range began, and when the
 * newest one ended; to 0 if there is none. Hosts whose clock is ahead do not count, unless all are.
 * Returns as headers_read() does.
 */
int headers_ends(struct shards *shards, const struct fleet_config *config,
		 const struct header_question *question, struct wire_span *out);

/*
 * Sets *out to true if one of these hosts has windows in the range in the table of the question,
 * but none in the table `other`. Returns as headers_read() does.
 */
int headers_are_alone(struct shards *shards, const struct fleet_config *config,
		      const struct header_question *question, const char *other, bool *out);

/*
 * Appends the condition for windows that overlap the range to SQL. Rows of a slice need that of
 * headers_put_middles(), too.
 */
void headers_put_range(struct text *sql, const struct header_question *question);
void headers_put_middles(struct text *sql, const struct header_question *question);

/*
 * Fills in how much of the range the windows cover (covered_ns: the average of the hosts), and the
 * gaps: those of each host, and one for each shard that has failed. Returns 0 or -ENOMEM.
 */
int headers_coverage(const struct headers *headers, const struct shards *shards,
		     const struct header_question *question, int64_t now, struct arena *arena,
		     struct wire_coverage *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_WINDOW_SPAWNS_H
#define STACKD_DAEMON_WINDOW_WINDOW_SPAWNS_H

/*
 * The processes that began and ended in one window or, as a sum, in several windows: how many, by
 * the name of the parent process and by their own name. Processes that live for milliseconds have
 * few rows of their own, but may take much of a host. Only windows of offcpu as an always-on probe
 * have this. A member of struct window; like that, it does not change once the window is made.
 */

#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"

/* A process that ended after a shorter life than this is short-lived, in ns. */
#define SPAWN_SHORT_NS INT64_C(10000000000)

/*
 * The most rows in one window, and in a sum while it is made. The rows with the least events go:
 * their events are counted in `others`.
 */
enum { WINDOW_SPAWNS_MAX = 64, WINDOW_SPAWNS_SUM_MAX = 1024 };

struct spawn_sums {
	uint64_t forks;
	uint64_t execs;
	uint64_t exits;
	uint64_t shorts;  /* number of exits of short-lived processes, part of exits */
	uint64_t cpu_ns;  /* CPU time of these short-lived processes, from their start */
	uint64_t life_ns; /* sum of their lives */
};

/* A row. After a fork, a process has the name of its parent until it calls exec. */
struct window_spawn {
	char parent[COMM_LEN]; /* the bytes behind the name are zero, also in comm */
	char comm[COMM_LEN];
	struct spawn_sums sums;
};

struct window_spawns {
	uint64_t ns;		/* total length of the windows that have this; 0: none has */
	struct window_spawn *v; /* sorted by the bytes of parent and comm */
	size_t n;
	size_t capacity;
	struct spawn_sums others; /* sums of the events that are in no row */
	/*
	 * number of rows that were moved to `others`; one in several windows counts in each. Events
	 * for which there was no row from the start are not in this number.
	 */
	uint64_t n_others;
};

/* Adds the numbers of *other to those of *sum. */
void spawn_sums_add(struct spawn_sums *sum, const struct spawn_sums *other);

/* Returns the number of events: forks, execs and exits. Rows are kept by it. */
uint64_t spawn_events(const struct spawn_sums *sums);

/*
 * Adds events to the row with these names, which need not end with a NUL if they are COMM_LEN bytes
 * long. Adds them to `others` if there are WINDOW_SPAWNS_SUM_MAX rows, or no memory for another.
 */
void window_spawns_count(struct window_spawns *spawns, const char *parent, const char *comm,
			 const struct spawn_sums *sums);

/* Adds an exit in this way. cpu_ns and life_ns are those of the whole process. */
void window_spawns_exit(struct window_spawns *spawns, const char *parent, const char *comm,
			uint64_t cpu_ns, uint64_t life_ns);

/* Adds what another window has, with at most WINDOW_SPAWNS_SUM_MAX rows in the sum. */
void window_spawns_add(struct window_spawns *sum, const struct window_spawns *other);

/*
 * Moves the rows with the least events to `others` until no more than `max` rows are left, which is
 * not 0. Frees the memory that the rows do not need.
 */
void window_spawns_limit(struct window_spawns *spawns, size_t max);

/* Adds up all rows and `others`. */
struct spawn_sums window_spawns_total(const struct window_spawns *spawns);

/* Returns the memory of the rows, in bytes. */
size_t window_spawns_bytes(const struct window_spawns *spawns);

/* Frees the rows, and sets all members to 0. */
void window_spawns_fini(struct window_spawns *spawns);

#endif

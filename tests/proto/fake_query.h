/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_FAKE_QUERY_H
#define STACKD_TESTS_FAKE_QUERY_H

/*
 * A double of daemon/query/ for tests of the socket and the service: it makes answers up from the
 * request. In a Snapshot, `top` is the number of rows, and the probe chooses the kind of answer.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { FAKE_FRAMES = 20 };

#define FAKE_PROBE   "offcpu"  /* `top` rows of FAKE_FRAMES frames a stack */
#define FAKE_SLOW    "slow"    /* as offcpu, after 300 ms; Start waits while is_held, and fails */
#define FAKE_BYTES   "bytes"   /* as offcpu, with names that are not UTF-8 */
#define FAKE_LARGE   "large"   /* as offcpu, where the names of the second row alone are 3 MiB */
#define FAKE_LATER   "later"   /* as offcpu, but is to be made again while is_held */
#define FAKE_BROKEN  "broken"  /* fails, for a reason that is not in the request */
#define FAKE_ENDLESS "endless" /* as offcpu, but only when the client has hung up */
#define FAKE_DEEP    "endless_rows" /* only for Follow: 50000 rows, as offcpu */
#define FAKE_BEGINS  "begins"	    /* only for Start, which waits while is_held, and succeeds */

struct recorder {
	atomic_int answers;   /* answers that were made and not freed */
	atomic_int snapshots; /* Snapshots requested so far */
	atomic_int cancelled; /* queries that ended because their client has hung up */
	atomic_int rows;      /* rows that were made so far */
	int64_t windows;      /* number of windows in the answer to Windows */
	/* Start with FAKE_SLOW or FAKE_BEGINS does not return; see FAKE_LATER, too */
	atomic_bool is_held;
	atomic_int starting;	/* calls of Start that have not returned */
	atomic_int given_up;	/* sessions that were ended as their reply could not be written */
	atomic_int begun;	/* sessions that began, with FAKE_BEGINS */
	atomic_bool is_running; /* the sessions that began have not ended */
};

#endif

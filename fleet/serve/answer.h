/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_SERVE_ANSWER_H
#define STACKD_FLEET_SERVE_ANSWER_H

/*
 * Answers the methods of io.stackd from the tables of a fleet. An answer owns its memory and is
 * made and used by one thread at a time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/probe_kind.h"
#include "fleet/serve/limits.h"
#include "fleet/serve/shards.h"
#include "fleet/serve/slices.h"
#include "proto/wire.h"
#include "proto/wire_error.h"

struct fleet_config;

struct fleet_answer {
	const struct fleet_config *config;
	struct arena *arena; /* memory of the reply */
	struct shards *shards;
	struct fleet_limits *limits;
	union wire_reply reply; /* the member that is named after the method is set */
};

/*
 * Returns an empty answer; NULL when out of memory. It borrows all arguments. The answers of one
 * call have the same shards, so that one that does not answer is waited for once.
 */
struct fleet_answer *fleet_answer_new(const struct fleet_config *config, struct shards *shards,
				      struct fleet_limits *limits);
struct fleet_answer *fleet_answer_free(struct fleet_answer *answer);

/*
 * These functions fill in answer->reply. They return 0; a negative errno with *error filled if the
 * request is at fault or cannot be answered; or another negative errno.
 */

/* What an answer is about. */
struct fleet_question {
	const struct wire_snapshot_request *request;
	size_t range;			 /* the number of the range in request->ranges */
	const struct fleet_slice *slice; /* one of the slices of the range; NULL: the whole range */
	const char *table;		 /* of the windows of the slice */
	bool is_of_overview;		 /* `top` counts the rows of each part of the time */
	bool may_lack_threads;		 /* it is no error that the filter selects no thread */
};

int fleet_snapshot(struct fleet_answer *answer, const struct fleet_question *question,
		   struct wire_error *error);

/* Sets *out to the slices of a request that has each_ns. The caller frees out->v. */
int fleet_slices(struct fleet_answer *answer, const struct wire_snapshot_request *request,
		 struct fleet_slices *out, struct wire_error *error);

/*
 * Makes the answer of one probe of an overview: of offcpu for the range, then of oncpu and of iolat
 * for the time `used` that the first one used.
 */
int fleet_overview(struct fleet_answer *answer, const struct wire_overview_request *request,
		   enum probe_kind kind, struct wire_range used, struct wire_error *error);
int fleet_windows(struct fleet_answer *answer, const struct wire_windows_request *request,
		  struct wire_error *error);

/* Returns what says that an answer is about hosts of a fleet; NULL when out of memory. */
const struct wire_fleet *fleet_make(struct fleet_answer *answer, size_t n_hosts);

/* `started` is when the gateway was started. */
int fleet_status(struct fleet_answer *answer, int64_t started, struct wire_error *error);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_SNAPSHOT_H
#define STACKD_CLIENT_CALL_SNAPSHOT_H

/*
 * A Snapshot call, from the options to the printed answer, for the verbs snapshot, stuck, record,
 * watch and the older tools. A failure has been reported when a function returns. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/base/exit_code.h"
#include "client/render/render.h"
#include "common/arena.h"
#include "proto/wire.h"

struct options;

/* A request and the memory that it points to. */
struct snapshot_request {
	struct wire_snapshot_request request;
	struct wire_filter filter;
	const char *states[32];
};

/*
 * Makes the request for these options. now: ns since 1970. Returns 0, or -EINVAL with
 * options->message.
 */
int snapshot_request_init(struct snapshot_request *request, struct options *options,
			  const char *probe, bool is_stuck, int64_t now);

/* Makes the filter of the request only, for a session. */
void snapshot_filter_init(struct snapshot_request *request, const struct options *options);

/* True if the word is the name of a probe; any other word is the id or name of a session. */
bool snapshot_is_probe(const char *text);

/* All replies to one call as one: the fields of the first and the rows of all. */
struct collection {
	struct arena *arena;
	struct wire_snapshot_reply reply;
	struct wire_row *rows; /* malloc'ed; the owner of the collection frees it */
	size_t n;
	size_t capacity;
	bool has_reply;
};

struct varlink_message;

/* Adds a reply; a reply_handler whose context is a collection. */
int collection_add(const struct varlink_message *message, void *context);

/* Returns how to show an answer on a stream, as the options say. */
struct view snapshot_view(const struct options *options, FILE *out);

/* Prints an answer in the format of the options. */
void snapshot_render(const struct options *options, const struct view *with, bool is_stuck,
		     const struct wire_snapshot_reply *reply);

/*
 * Returns EXIT_CODE_PARTIAL, and reports why, if --strict was given and the answer has gaps or
 * losses. what: the name of the answer, if there are several, or NULL.
 */
enum exit_code snapshot_check_complete(const struct options *options, const char *what,
				       const struct wire_snapshot_reply *reply);

/* Asks the daemon and prints the answer. */
enum exit_code snapshot_run(struct options *options, const char *probe, bool is_stuck);

/*
 * Does what snapshot_run() does, and counts the threads that the answer is about in *threads_out; 0
 * without an answer.
 */
enum exit_code snapshot_run_seen(struct options *options, const char *probe, bool is_stuck,
				 int64_t *threads_out);

#endif

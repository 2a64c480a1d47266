/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_SNAPSHOT_H
#define STACKD_CLIENT_CALL_SNAPSHOT_H

/*
 * A Snapshot call from options to output, which the verbs snapshot and stuck share. Failures
 * have been reported when a function returns. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/base/exit_code.h"
#include "client/render/render.h"
#include "common/arena.h"
#include "proto/wire.h"

struct options;

/* What a request points to; it lives as long as the request. */
struct snapshot_request {
	struct wire_snapshot_request request;
	struct wire_filter filter;
	const char *states[32];
};

/* The request for these options at the present `now`; 0, or -EINVAL with options->message. */
int snapshot_request_init(struct snapshot_request *request, struct options *options,
			  const char *probe, bool is_stuck, int64_t now);

/* The filter alone, for a session. */
void snapshot_filter_init(struct snapshot_request *request, const struct options *options);

/* Whether the word is a probe's name; any other is a session's. */
bool snapshot_is_probe(const char *text);

/* Replies to one call, put together: the first one's fields and everybody's rows. */
struct collection {
	struct arena *arena;
	struct wire_snapshot_reply reply;
	struct wire_row *rows; /* on the heap, the owner's to free */
	size_t n;
	size_t capacity;
	bool has_reply;
};

struct varlink_message;

/* A reply_handler of a collection. */
int collection_add(const struct varlink_message *message, void *context);

/* Returns how to show an answer on a stream, as the options say. */
struct view snapshot_view(const struct options *options, FILE *out);

/* Prints an answer in the format of the options; of stuck with both stacks, whichever are shown. */
void snapshot_render(const struct options *options, const struct view *with, bool is_stuck,
		     const struct wire_snapshot_reply *reply);

/*
 * For what has been printed: EXIT_CODE_PARTIAL, reported, where --strict wants the whole answer and
 * it is not. what: of several answers, this one's name, or NULL.
 */
enum exit_code snapshot_check_complete(const struct options *options, const char *what,
				       const struct wire_snapshot_reply *reply);

/* Asks, and prints as the options say. */
enum exit_code snapshot_run(struct options *options, const char *probe, bool is_stuck);

/* The same, and how many threads were seen, where there is an answer; else 0. */
enum exit_code snapshot_run_seen(struct options *options, const char *probe, bool is_stuck,
				 int64_t *threads_out);

#endif

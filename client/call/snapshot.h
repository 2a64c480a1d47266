/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_SNAPSHOT_H
#define STACKD_CLIENT_CALL_SNAPSHOT_H

/*
 * A Snapshot call, from the options to the printed answer. The verbs snapshot, stuck, record and
 * watch and the older tools use it. A function that fails prints a message on standard error before
 * it returns. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/base/exit_code.h"
#include "client/render/render.h"
#include "common/arena.h"
#include "proto/wire.h"

struct options;

/* A Snapshot request, with the filter, the states and the reasons that it points to. */
struct snapshot_request {
	struct wire_snapshot_request request;
	struct wire_filter filter;
	const char *states[32];
	const char *reasons[32];
	const char *not_states[32];
	const char *not_reasons[32];
	struct wire_span ranges[256];
};

/*
 * Fills the request from the options. `now` is the present time in ns since 1970. Returns 0, or
 * -EINVAL with a message in options->message.
 */
int snapshot_request_init(struct snapshot_request *request, struct options *options,
			  const char *probe, bool is_stuck, int64_t now);

/*
 * Fills only the filter of the request. Used to start a session, too, whose filter has the same
 * form.
 */
void snapshot_filter_init(struct snapshot_request *request, const struct options *options);

/* True if the word is the name of a probe; any other word is the id or name of a session. */
bool snapshot_is_probe(const char *text);

/* All replies to one call, joined: the fields of the first reply and the rows of all replies. */
struct collection {
	struct arena *arena;
	struct wire_snapshot_reply reply;
	struct wire_row *rows; /* the rows of all replies; freed by the owner of the collection */
	size_t n;
	size_t capacity;
	bool has_reply;
};

/*
 * Refuses a reply whose rows lack a field that the functions of render/ rely on. Returns 0 or
 * -EINVAL.
 */
int collection_check_reply(const struct wire_snapshot_reply *reply);

/* Returns how many of the rows are about waits that may be over. */
size_t count_doubtful_rows(const struct wire_rows *rows);

/* True if all rows of the answer have arrived. */
bool collection_is_whole(const struct collection *c);

/* Adds a decoded reply, whose memory is in the arena of the collection. Returns 0 or an errno. */
int collection_add_reply(struct collection *c, const struct wire_snapshot_reply *reply);

struct varlink_message;

/* Adds a reply to the collection that `context` points to. To be used as a reply_handler. */
int collection_add(const struct varlink_message *message, void *context);

/* True if each row of the text is one line: no option asks for stacks, or for how to print them. */
bool snapshot_has_lines(const struct options *options);

/*
 * Asks for rows that are a program each, if the text has a line for each row and --by is not given.
 * A session whose rows are calls has other rows even so.
 */
void snapshot_request_set_lines(struct snapshot_request *request, const struct options *options);

/* Returns the settings for printing an answer on the stream `out`, made from the options. */
struct view snapshot_view(const struct options *options, FILE *out);

/*
 * Prints an answer in the format that the options name. If `is_stuck` is true, it is an answer to
 * `stackctl stuck`.
 */
void snapshot_render(const struct options *options, const struct view *with, bool is_stuck,
		     const struct wire_snapshot_reply *reply);

/*
 * Checks an answer if --strict was given. If the answer has gaps or losses, reports them and
 * returns EXIT_CODE_PARTIAL. `what` is the name of the answer in the message, or NULL if there is
 * only one answer.
 */
enum exit_code snapshot_check_complete(const struct options *options, const char *what,
				       const struct wire_snapshot_reply *reply);

/* True if no window is in the range of the answer, or if the filter selects no thread in it. */
bool snapshot_is_empty(const struct options *options, const struct wire_snapshot_reply *reply);

#endif

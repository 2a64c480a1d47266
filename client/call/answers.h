/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_ANSWERS_H
#define STACKD_CLIENT_CALL_ANSWERS_H

/*
 * Prints an answer while its replies arrive, so that its rows are never in memory all together. For
 * formats that can do so (struct format, stream_new). Main thread.
 */

#include "client/base/exit_code.h"
#include "client/call/output.h"
#include "client/call/snapshot.h"
#include "client/render/formats.h"
#include "common/text.h"

struct options;

/* The most answers of one call: those of an overview. */
enum { STREAM_ANSWERS = 3 };

struct stream {
	const struct options *options;
	const char *stem; /* beginning of the name of a file that --output DIR/ makes */
	enum stream_kind kind;
	int64_t now;
	struct output output;
	struct view view;
	void *printer; /* the stream of the format; NULL until the first reply has come */
	/* the answers that have begun; their replies lack the rows; of slices, only the last one */
	struct collection answers[STREAM_ANSWERS];
	size_t n;
	size_t n_incomplete; /* number of answers with gaps or losses */
	size_t n_begun;	     /* number of all answers that have begun */
	size_t n_doubtful;   /* number of rows of waits that may be over */
	size_t n_empty;	     /* number of answers without data, see snapshot_is_empty() */
	enum exit_code code; /* why the output failed */
	bool has_failed;     /* a write has failed */
};

/*
 * Makes a call and prints its replies. The caller has set the first four members of *stream, and
 * calls stream_fini(). Prints a message if it fails.
 */
enum exit_code stream_run(struct stream *stream, const struct text *request);
void stream_fini(struct stream *stream);

/* Returns the first reply of the answer of a probe, without its rows; NULL if there is none. */
const struct wire_snapshot_reply *stream_reply(const struct stream *stream, const char *probe);

#endif

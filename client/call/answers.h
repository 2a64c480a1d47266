/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_ANSWERS_H
#define STACKD_CLIENT_CALL_ANSWERS_H

/*
 * The answers to one call, each of which comes in one or more replies: one answer, those of an
 * overview, or those of slices or ranges. They are printed while their replies arrive, so that
 * their rows are never in memory all together, if the format can do so (struct format, stream_new);
 * else when they are whole. Main thread.
 */

#include "client/base/exit_code.h"
#include "client/call/output.h"
#include "client/call/snapshot.h"
#include "client/render/formats.h"
#include "common/text.h"

struct options;

struct answers {
	const struct options *options;
	const char *stem; /* beginning of the name of a file that --output DIR/ makes */
	enum stream_kind kind;
	int64_t now;
	/* Prints the answers, which are whole. NULL: they are printed while they arrive. */
	void (*print)(const struct answers *answers, const struct view *view);
	bool is_each; /* print() is called for each answer, and its memory is freed then */

	/*
	 * The answers that have begun. Those that are printed while they arrive lack the rows, and
	 * of slices only the last one is here. With is_each, so is the one that is printed next.
	 */
	struct arena *arena; /* memory of answers that are printed when they are whole */
	struct collection *v;
	size_t n;
	size_t capacity;
	size_t n_begun;	     /* number of all answers that have begun */
	size_t n_incomplete; /* number of answers with gaps or losses */
	size_t n_empty;	     /* number of answers without data, see snapshot_is_empty() */
	size_t n_doubtful;   /* number of rows of waits that may be over */

	struct output output;
	struct view view;
	bool is_open;	     /* the output and its view are open */
	void *printer;	     /* the stream of the format; NULL until the first reply has come */
	enum exit_code code; /* why the output could not be opened */
	bool has_failed;     /* a write of the printer has failed */
};

/*
 * Makes a call and prints its answers. The caller has set the members above the empty line, and
 * calls answers_fini(). Prints a message if it fails. A call that a signal ended may have no
 * answer.
 */
enum exit_code answers_run(struct answers *answers, const struct text *request);
void answers_fini(struct answers *answers);

/*
 * Makes the Snapshot call that the options ask for, and prints its answers. The caller has set
 * `kind`, `print` and `is_each`, and calls answers_fini(). Prints a message if it fails.
 */
enum exit_code answers_run_snapshot(struct answers *answers, struct options *options,
				    const char *probe, bool is_stuck);

/* Returns the answer of a probe, or the first one if probe is NULL; NULL if there is none. */
const struct wire_snapshot_reply *answers_find(const struct answers *answers, const char *probe);

#endif

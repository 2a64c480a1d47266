/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_TOP_ASK_H
#define STACKD_CLIENT_TOP_ASK_H

/*
 * Asks the daemon on a thread of its own, so that the screen answers to keys while the daemon does
 * not. One question is under way at a time. The functions are for the main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "client/call/snapshot.h"
#include "client/top/state.h"

struct options;

/* The purposes of questions. */
enum top_purpose {
	TOP_ROWS,    /* the rows of a tab */
	TOP_WAKERS,  /* who ended the waits of the process `pid` */
	TOP_STACKS,  /* the stacks of the process `pid` in the rows of `probe` */
	TOP_PICTURE, /* all rows of a tab, by stack */
};

struct top_question {
	struct top_state state;
	enum top_purpose purpose;
	int64_t window_ns;   /* length of the range up to now, if no time is given */
	int64_t top;	     /* rows to ask for; 0: all */
	int64_t pid;	     /* TOP_WAKERS, TOP_STACKS; 0: the threads with the name are meant */
	char comm[TOP_TEXT]; /* TOP_STACKS without a pid: a shell pattern */
	const char *probe;   /* TOP_STACKS */
	unsigned int pane_number; /* TOP_WAKERS, TOP_STACKS: the pane that the answer is for */
	/* the time that is shown; not for TOP_ROWS, where the state says it */
	struct wire_span span;
};

/* Memory of the replies is in the arenas of the collections. */
struct top_answer {
	struct top_question question;
	struct collection waits;   /* of offcpu or offwake */
	struct collection samples; /* of oncpu */
	struct collection io;	   /* of iolat */
	char *message;		   /* why there is no answer; NULL: there is one */
	bool is_nothing; /* the daemon has nothing of what was asked for: message says why */
};

/* Frees the answer, which may be NULL. Returns NULL. */
struct top_answer *top_answer_free(struct top_answer *answer);

struct top_ask;

/* Returns the program's one object, to be used until it ends. The options are borrowed. */
struct top_ask *top_ask_new(const struct options *options);

/* Returns a descriptor that can be read when the answer is there. */
int top_ask_fd(const struct top_ask *ask);

/* True if a question is under way. */
bool top_ask_is_busy(const struct top_ask *ask);

/* Returns since when the question is under way, in ns of CLOCK_MONOTONIC. */
int64_t top_ask_since(const struct top_ask *ask);

/* Begins to ask. No other question may be under way. Returns 0 or a negative errno. */
int top_ask_begin(struct top_ask *ask, const struct top_question *question);

/* Returns the answer, which the caller owns. To be called when the descriptor can be read. */
struct top_answer *top_ask_take(struct top_ask *ask);

#endif

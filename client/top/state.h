/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_TOP_STATE_H
#define STACKD_CLIENT_TOP_STATE_H

/*
 * Keeps what `stackctl top` shows, and changes it as keys ask for. Uses no terminal and makes no
 * calls. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tab { TAB_OVERVIEW, TAB_BLOCKED, TAB_ON_CPU, TAB_RUNNABLE, TAB_IO, TAB_STUCK, TABS };

/* What is below the head of the screen. */
enum pane {
	PANE_ROWS,
	PANE_STACKS, /* of the selected row */
	PANE_WAKERS, /* who ended the waits of the selected row's process, and holders */
	PANE_HELP,
};

enum prompt { PROMPT_NONE, PROMPT_FILTER, PROMPT_TIME };

/* Says what there is to do after a key. */
enum action {
	ACTION_NONE,
	ACTION_DRAW,	/* draw the screen again */
	ACTION_ASK,	/* ask the daemon at once, and draw */
	ACTION_STACKS,	/* fill the pane with the stacks of the selected row */
	ACTION_WAKERS,	/* ask who woke the process of the selected row */
	ACTION_MARK,	/* keep the present answer as the base to compare with, or forget it */
	ACTION_PICTURE, /* write a flame graph of what is shown to a file */
	ACTION_QUIT,
};

/* Sizes of texts. A message may have one of the daemon as its part. */
enum { TOP_TEXT = 128, TOP_MESSAGE = 1024 };

/* A step through a stretch without windows, and the length of a range that selects one window. */
#define TOP_GAP_STEP_NS INT64_C(60000000000)
#define TOP_PICK_NS	INT64_C(1000000)

struct top_state {
	enum tab tab;
	enum pane pane;
	enum prompt prompt;
	size_t sort;		   /* index for top_sort() */
	size_t group;		   /* index for top_group() */
	size_t stuck_group;	   /* the same for the tab stuck, where threads have holders */
	bool io_by_process;	   /* the same for the tab I/O; false: by operation */
	bool is_frozen;		   /* the time that was shown as the present stays on the screen */
	bool has_idle;		   /* idle rows are shown, too */
	int64_t since_ns;	   /* the past time that is shown; 0: the present */
	int64_t until_ns;	   /* end of that time */
	size_t selected;	   /* row */
	size_t first;		   /* first row, or first line of a pane of text, on the screen */
	char filter[TOP_TEXT];	   /* thread names that are shown, a shell pattern; empty: all */
	char input[TOP_TEXT];	   /* what was typed at the prompt */
	char message[TOP_MESSAGE]; /* an answer to the last key; empty: none */
};

/* What is on the screen when a key comes. */
struct top_shown {
	int64_t now;	    /* ns since 1970 */
	int64_t start, end; /* the time that the answer used; 0: there was no answer yet */
	bool has_windows;   /* the answer is about at least one window */
	int64_t step_ns;    /* how far the next window is looked for if it is about none */
	size_t rows;	    /* rows of the answer, or lines of the pane */
	size_t height;	    /* lines of the screen for them */
};

/* Changes the state as a key of ncurses asks for, and returns what there is to do. */
enum action top_key(struct top_state *state, int key, const struct top_shown *shown);

/* Keeps the selected row within `rows`, and the first row so that the selected one is visible. */
void top_fit(struct top_state *state, size_t rows, size_t height);

/* Returns the name of a tab: "on CPU". */
const char *top_tab_name(enum tab tab);

/* Return the values of `sort` and `by` in a request: "total", "stack". */
const char *top_sort(const struct top_state *state);
const char *top_group(const struct top_state *state);

/* True if a row of the tab stuck stands for the threads of a process that wait alike. */
bool top_is_folded(const struct top_state *state);

/* True if rows stand for the same in answers to both states, whatever the time that is shown. */
bool top_asks_same(const struct top_state *a, const struct top_state *b);

/* Returns the lines of the help, which end with NULL. */
const char *const *top_help(void);

#endif

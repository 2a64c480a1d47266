/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/top/state.h"

#include <ncurses.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "common/when.h"

enum { KEY_CTRL_C = 3, KEY_ESCAPE = 27, KEY_DELETE = 127 };

static const char *const sorts[] = { "total", "max", "count" };
static const char *const groups[] = { "stack",	"process",  "thread",	 "comm",
				      "cgroup", "unit",	    "container", "user",
				      "module", "function", "reason" };
static const char *const tab_names[TABS] = { "overview", "blocked", "on CPU",
					     "runnable", "I/O",	    "stuck" };
static const char *const help[] = {
	"1 to 6, Tab     overview, blocked, on CPU, runnable, I/O, stuck; the next one",
	"Up, Down, j, k  select a row; PgUp and PgDn a screen, Home and End all of them",
	"Enter           stacks of the selected row; again, or Esc: back",
	"w               who holds what it waits for; who ended the waits of its process",
	"s               sort by total time, longest wait, or count",
	"g, G            a row for each stack, process, thread, comm, unit, ...; back",
	"/               show only threads with such a name; empty: all",
	"i               show idle threads, too; again: leave them out",
	"Left, Right     one window back in time, one window forward",
	"t               go to a time: 03:12, -10min, 2026-03-09 14:00; empty: now",
	"n               back to now",
	"Space           freeze the screen; again: go on",
	"b               mark this as the base: show changes against it; again: forget it",
	"x               write a flame graph of the tab (x.svg) to the current directory",
	"q, Ctrl-C       quit",
	NULL,
};

const char *top_tab_name(enum tab tab)
{
	return tab_names[tab];
}

const char *top_sort(const struct top_state *state)
{
	/* Samples have no length. */
	if (state->tab == TAB_ON_CPU && strcmp(sorts[state->sort], "max") == 0)
		return sorts[0];
	return sorts[state->sort];
}

const char *top_group(const struct top_state *state)
{
	if (state->tab == TAB_IO)
		return state->io_by_process ? "process" : "operation";
	return groups[state->tab == TAB_STUCK ? state->stuck_group : state->group];
}

bool top_is_folded(const struct top_state *state)
{
	return state->tab == TAB_STUCK && strcmp(top_group(state), "stack") == 0;
}

bool top_asks_same(const struct top_state *a, const struct top_state *b)
{
	bool is_same =
		a->tab == b->tab && a->has_idle == b->has_idle && strcmp(a->filter, b->filter) == 0;

	/* These tabs have a grouping and an order of their own. */
	if (!is_same || a->tab == TAB_OVERVIEW || a->tab == TAB_RUNNABLE)
		return is_same;
	return strcmp(top_group(a), top_group(b)) == 0 &&
	       (a->tab == TAB_STUCK || a->sort == b->sort);
}

const char *const *top_help(void)
{
	return help;
}

void top_fit(struct top_state *state, size_t rows, size_t height)
{
	if (state->selected >= rows)
		state->selected = rows ? rows - 1 : 0;
	if (state->first > state->selected)
		state->first = state->selected;
	if (height && state->selected >= state->first + height)
		state->first = state->selected - height + 1;
}

static enum action set_tab(struct top_state *state, enum tab tab)
{
	state->tab = tab;
	state->pane = PANE_ROWS;
	state->selected = state->first = 0;
	return ACTION_ASK;
}

static enum action set_pane(struct top_state *state, enum pane pane)
{
	state->pane = pane;
	state->first = 0;
	return ACTION_DRAW;
}

/* Moves by `by` rows or, in a pane of text, lines. */
static enum action move_by(struct top_state *state, const struct top_shown *shown, long by)
{
	bool is_text = state->pane != PANE_ROWS;
	size_t *at = is_text ? &state->first : &state->selected;
	size_t end = shown->rows, last;

	last = is_text ? (end > shown->height ? end - shown->height : 0) : end ? end - 1 : 0;
	if (by < 0)
		*at = *at > (size_t)-by ? *at - (size_t)-by : 0;
	else
		*at = last > (size_t)by && *at < last - (size_t)by ? *at + (size_t)by : last;
	if (!is_text)
		top_fit(state, shown->rows, shown->height);
	return ACTION_DRAW;
}

static enum action go_to(struct top_state *state, int64_t since_ns, int64_t until_ns)
{
	state->since_ns = since_ns;
	state->until_ns = until_ns;
	state->is_frozen = false;
	state->pane = PANE_ROWS;
	return ACTION_ASK;
}

/*
 * Goes to the window before the one that is shown, or in a stretch without windows a step back. The
 * daemon rounds a range to whole windows, so that a short one selects one window.
 */
static enum action go_back(struct top_state *state, const struct top_shown *shown)
{
	int64_t end = shown->start;

	if (!end)
		return ACTION_NONE;
	if (!shown->has_windows)
		end -= shown->step_ns;
	return go_to(state, end - TOP_PICK_NS, end);
}

static enum action go_forward(struct top_state *state, const struct top_shown *shown)
{
	int64_t start = shown->end;

	if (!state->since_ns)
		return ACTION_NONE;
	if (!shown->has_windows)
		start += shown->step_ns;
	if (start + TOP_PICK_NS >= shown->now)
		return go_to(state, 0, 0);
	return go_to(state, start, start + TOP_PICK_NS);
}

/* Keeps the time that is shown, also for other tabs; or goes on from there. */
static enum action freeze(struct top_state *state, const struct top_shown *shown)
{
	if (state->is_frozen)
		return go_to(state, 0, 0);
	if (state->since_ns || !shown->start)
		return ACTION_NONE;
	state->since_ns = shown->start;
	state->until_ns = shown->end;
	state->is_frozen = true;
	return ACTION_DRAW;
}

static enum action prompt_open(struct top_state *state, enum prompt prompt)
{
	state->prompt = prompt;
	state->input[0] = '\0';
	return ACTION_DRAW;
}

/* Sets the filter to what was typed: without wildcards, to all names that have it as a part. */
static enum action set_filter(struct top_state *state)
{
	const char *input = state->input;
	bool is_plain = input[0] && !strpbrk(input, "*?[");
	int n = snprintf(state->filter, sizeof(state->filter), "%s%s%s", is_plain ? "*" : "", input,
			 is_plain ? "*" : "");

	if (n >= (int)sizeof(state->filter)) {
		state->filter[0] = '\0';
		snprintf(state->message, sizeof(state->message), "the name is too long");
	}
	state->selected = state->first = 0;
	state->pane = PANE_ROWS;
	return ACTION_ASK;
}

static enum action set_time(struct top_state *state, const struct top_shown *shown)
{
	const struct when_context context = { WHEN_AT, shown->now, INT64_MIN };
	int64_t at;

	if (!state->input[0])
		return go_to(state, 0, 0);
	if (when_parse(state->input, &context, &at) < 0 || at <= 0) {
		snprintf(state->message, sizeof(state->message), "%.40s is no time: %s",
			 state->input, when_grammar());
		return ACTION_DRAW;
	}
	if (at + TOP_PICK_NS >= shown->now)
		return go_to(state, 0, 0);
	return go_to(state, at, at + TOP_PICK_NS);
}

static enum action key_at_prompt(struct top_state *state, int key, const struct top_shown *shown)
{
	size_t n = strlen(state->input);
	enum prompt prompt = state->prompt;

	if (key == KEY_ESCAPE || key == KEY_CTRL_C) {
		state->prompt = PROMPT_NONE;
	} else if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		state->prompt = PROMPT_NONE;
		return prompt == PROMPT_FILTER ? set_filter(state) : set_time(state, shown);
	} else if (key == KEY_BACKSPACE || key == KEY_DELETE || key == '\b') {
		if (n)
			state->input[n - 1] = '\0';
	} else if (key >= ' ' && key < KEY_DELETE && n + 1 < sizeof(state->input)) {
		state->input[n] = (char)key;
		state->input[n + 1] = '\0';
	}
	return ACTION_DRAW;
}

static enum action say(struct top_state *state, const char *message)
{
	snprintf(state->message, sizeof(state->message), "%s", message);
	return ACTION_DRAW;
}

static bool has_lines(const struct top_state *state)
{
	return state->tab == TAB_OVERVIEW || state->tab == TAB_RUNNABLE;
}

/* Chooses what a row of the tab stands for: the group that is `by` behind the present one. */
static enum action next_group(struct top_state *state, size_t by)
{
	size_t *group = state->tab == TAB_STUCK ? &state->stuck_group : &state->group;

	if (has_lines(state))
		return say(state, "a row of this tab is always of one name and one reason");
	if (state->tab == TAB_IO)
		state->io_by_process = !state->io_by_process;
	else
		*group = (*group + by) % ARRAY_SIZE(groups);
	state->selected = state->first = 0;
	return ACTION_ASK;
}

/* Chooses the next order of rows that the tab has. */
static enum action next_sort(struct top_state *state)
{
	if (has_lines(state))
		return say(state, "this tab is always by time");
	if (state->tab == TAB_STUCK)
		return say(state, "this tab always has the longest waits first, after D and locks");
	do
		state->sort = (state->sort + 1) % ARRAY_SIZE(sorts);
	while (strcmp(top_sort(state), sorts[state->sort]) != 0);
	return ACTION_ASK;
}

/* Handles the keys that choose what to ask for. Returns ACTION_NONE if the key is none of them. */
static enum action key_of_question(struct top_state *state, int key, const struct top_shown *shown)
{
	switch (key) {
	case KEY_LEFT:
		return go_back(state, shown);
	case KEY_RIGHT:
		return go_forward(state, shown);
	case 'n':
		return go_to(state, 0, 0);
	case 't':
		return prompt_open(state, PROMPT_TIME);
	case '/':
		return prompt_open(state, PROMPT_FILTER);
	case 's':
		return next_sort(state);
	case 'g':
		return next_group(state, 1);
	case 'G':
		return next_group(state, ARRAY_SIZE(groups) - 1);
	case 'i':
		state->has_idle = !state->has_idle;
		return ACTION_ASK;
	default:
		return ACTION_NONE;
	}
}

static enum action key_of_pane(struct top_state *state, int key, const struct top_shown *shown)
{
	long page = shown->height > 1 ? (long)shown->height - 1 : 1;

	switch (key) {
	case KEY_UP:
	case 'k':
		return move_by(state, shown, -1);
	case KEY_DOWN:
	case 'j':
		return move_by(state, shown, 1);
	case KEY_PPAGE:
		return move_by(state, shown, -page);
	case KEY_NPAGE:
		return move_by(state, shown, page);
	case KEY_HOME:
		return move_by(state, shown, -(long)shown->rows);
	case KEY_END:
		return move_by(state, shown, (long)shown->rows);
	case '\n':
	case '\r':
	case KEY_ENTER:
		if (state->pane != PANE_ROWS)
			return set_pane(state, PANE_ROWS);
		return shown->rows ? ACTION_STACKS : ACTION_NONE;
	case 'w':
		return state->pane == PANE_ROWS && shown->rows ? ACTION_WAKERS : ACTION_NONE;
	case '?':
	case 'h':
		return set_pane(state, state->pane == PANE_HELP ? PANE_ROWS : PANE_HELP);
	case KEY_ESCAPE:
		return set_pane(state, PANE_ROWS);
	default:
		return ACTION_NONE;
	}
}

enum action top_key(struct top_state *state, int key, const struct top_shown *shown)
{
	enum action action;

	state->message[0] = '\0';
	if (state->prompt != PROMPT_NONE)
		return key_at_prompt(state, key, shown);
	if (key == 'q' || key == KEY_CTRL_C)
		return ACTION_QUIT;
	if (key >= '1' && key < '1' + TABS)
		return set_tab(state, (enum tab)(key - '1'));
	if (key == '\t')
		return set_tab(state, (state->tab + 1) % TABS);
	if (key == KEY_BTAB)
		return set_tab(state, (state->tab + TABS - 1) % TABS);
	if (key == ' ')
		return freeze(state, shown);
	if (key == 'b')
		return ACTION_MARK;
	if (key == 'x')
		return shown->start ? ACTION_PICTURE : ACTION_NONE;
	if (key == KEY_RESIZE)
		return ACTION_DRAW;
	action = key_of_question(state, key, shown);
	return action != ACTION_NONE ? action : key_of_pane(state, key, shown);
}

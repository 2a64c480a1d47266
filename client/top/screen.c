/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/top/screen.h"

#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/coverage.h"
#include "client/render/page.h"
#include "client/render/spawns.h"
#include "common/base.h"

size_t screen_height(void)
{
	int left = LINES - SCREEN_HEAD - SCREEN_FOOT;

	return left > 0 ? (size_t)left : 0;
}

/* Writes a text into a line of the screen, as much of it as fits. */
static void put_begin(int line, const char *text)
{
	_cleanup_(freep) char *fit = text_begin(text, (size_t)COLS);

	if (line < LINES)
		mvaddstr(line, 0, fit);
}

/* Writes a text into a line of the screen, from a column on; "..." stands for what has no room. */
static void put(int line, int column, const char *text)
{
	_cleanup_(freep) char *fit = NULL;

	if (line >= LINES || column >= COLS)
		return;
	fit = text_fit(text, (size_t)(COLS - column));
	mvaddstr(line, column, fit);
}

/*
 * Returns the text in lines as wide as the screen, each with a newline, and stores how many lines
 * it has. The text is escaped; the caller frees what is returned.
 */
static char *wrap(const char *text, int *n_out)
{
	struct page page = { .width = (size_t)(COLS > 20 ? COLS : 20) };
	char *lines = NULL;
	size_t size;

	page.out = must(open_memstream(&lines, &size));
	page_wrap(&page, STYLE_PLAIN, "", 0, "%s", text);
	if (fclose(page.out) != 0)
		must(NULL);
	*n_out = 0;
	for (const char *end = must(lines); (end = strchr(end, '\n')); end++)
		++*n_out;
	return lines;
}

/* Writes lines that end with newlines into those of the screen, from a line on. */
static void put_lines(int line, char *lines)
{
	for (char *end; (end = strchr(lines, '\n')); lines = end + 1) {
		*end = '\0';
		if (move(line, 0) == OK)
			clrtoeol();
		put_begin(line++, lines);
	}
}

static const struct wire_snapshot_reply *reply_of(const struct top_answer *answer)
{
	if (!answer)
		return NULL;
	if (answer->waits.has_reply)
		return &answer->waits.reply;
	if (answer->samples.has_reply)
		return &answer->samples.reply;
	return answer->io.has_reply ? &answer->io.reply : NULL;
}

/* The time that is shown, and how the screen stands to it. */
static void draw_title(const struct screen *screen)
{
	const struct wire_snapshot_reply *reply = reply_of(screen->answer);
	const struct top_state *state = screen->state;
	char text[512], start[TERM_TIME_MAX], end[TERM_TIME_MAX], span[2 * TERM_TIME_MAX + 4] = "";

	if (reply) {
		time_format(reply->coverage.used.start, TIME_DAY, start);
		time_format(reply->coverage.used.end, TIME_CLOCK, end);
		snprintf(span, sizeof(span), "  %s..%s", start, end);
	}
	snprintf(text, sizeof(text), "stackctl top%s%s%s%s%s%s", span,
		 state->is_frozen  ? "  FROZEN"
		 : state->since_ns ? "  PAST"
				   : "",
		 screen->base	    ? "  against the base"
		 : screen->has_base ? "  the base is of other rows"
				    : "",
		 state->has_idle ? "  with idle" : "", state->filter[0] ? "  name " : "",
		 state->filter);
	attron(A_BOLD);
	put(0, 0, text);
	attroff(A_BOLD);
}

/* Writes how many short-lived processes ended, if any, and whose where there is room. */
static void draw_spawns(const struct screen *screen, int column)
{
	const struct wire_snapshot_reply *reply = reply_of(screen->answer);
	_cleanup_(freep) char *text = reply ? spawns_line(reply->spawns) : NULL;
	char *more = text ? strstr(text, ", ") : NULL;

	if (more && (int)text_columns(text) > COLS - column)
		*more = '\0';
	if (text)
		put(1, column, text);
}

/* Says what a row of the tab stuck is, and how many waits there was no room for. */
static void put_stuck(const struct wire_snapshot_reply *reply, const struct top_state *state,
		      char *text, size_t size)
{
	int n = snprintf(text, size, "by %s", top_group(state));

	if (reply && reply->rest.rows > 0 && n > 0 && (size_t)n < size)
		snprintf(text + n, size - (size_t)n, "; %s more: stackctl stuck",
			 count_text(reply->rest.rows));
}

static void draw_tabs(const struct screen *screen)
{
	const struct top_state *state = screen->state;
	char text[64];
	int column = 0;

	for (enum tab tab = 0; tab < TABS; tab++) {
		snprintf(text, sizeof(text), "%d %s", (int)tab + 1, top_tab_name(tab));
		if (tab == state->tab)
			attron(A_REVERSE);
		put(1, column, text);
		attroff(A_REVERSE);
		column += (int)strlen(text) + 2;
	}
	if (state->tab == TAB_OVERVIEW)
		draw_spawns(screen, column);
	if (state->tab == TAB_OVERVIEW || state->tab == TAB_RUNNABLE)
		return;
	if (state->tab == TAB_STUCK)
		put_stuck(reply_of(screen->answer), state, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "by %s, %s", top_group(state), top_sort(state));
	put(1, column, text);
}

/* What is covered and lost, and how many threads ran and waited on average. */
static void draw_totals(const struct screen *screen)
{
	const struct wire_snapshot_reply *reply = reply_of(screen->answer);
	_cleanup_(freep) char *idle = reply ? idle_threads(reply, "idle thread") : NULL;
	char on_cpu[32], runnable[32], blocked[32], text[512];
	int64_t length, lost;
	int n;

	if (!reply)
		return;
	if (reply->missing || reply->coverage.windows == 0) {
		_cleanup_(freep) char *why =
			name_escape(reply->missing		 ? reply->missing
				    : reply->coverage.gaps.n > 0 ? reply->coverage.gaps.v[0].reason
								 : "no window in this time");

		put(2, 0, why);
		return;
	}
	length = coverage_length(&reply->coverage);
	lost = lost_count(&reply->lost);
	average_text(reply->totals.on_cpu_ns, length, on_cpu);
	/* What is lost comes first: the end may have no room. */
	n = snprintf(text, sizeof(text), "%s, %s%s", ns_text(length),
		     lost ? "LOST " : "nothing lost", lost ? count_text(lost) : "");
	if (!reply_is_iolat(reply))
		n += snprintf(text + n, sizeof(text) - (size_t)n, ": on CPU %s", on_cpu);
	if (!reply_is_iolat(reply) && reply->totals.cpus > 0)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " of %s CPUs",
			      count_text(reply->totals.cpus));
	if (reply->totals.runnable_ns != WIRE_ABSENT) {
		average_text(reply->totals.runnable_ns, length, runnable);
		average_text(reply->totals.blocked_ns, length, blocked);
		n += snprintf(text + n, sizeof(text) - (size_t)n, ", runnable %s, blocked %s",
			      runnable, blocked);
	}
	if (reply->idle.rows > 0 && !reply_is_sampled(reply))
		snprintf(text + n, sizeof(text) - (size_t)n, ", %s", idle);
	put_begin(2, text);
}

static void draw_rows(const struct screen *screen)
{
	const struct wire_snapshot_reply *reply = reply_of(screen->answer);
	const struct top_state *state = screen->state;
	int64_t length = reply ? coverage_length(&reply->coverage) : 0;
	size_t height = screen_height();
	_cleanup_(freep) char *heading = top_heading(state->tab, screen->base, (size_t)COLS);

	attron(A_BOLD);
	put_begin(SCREEN_HEAD - 1, heading);
	attroff(A_BOLD);
	for (size_t i = state->first; i < screen->rows->n && i < state->first + height; i++) {
		_cleanup_(freep) char *text =
			top_row_text(&screen->rows->v[i], screen->base, length, (size_t)COLS);

		if (i == state->selected)
			attron(A_REVERSE);
		if (top_row_is_urgent(&screen->rows->v[i]))
			attron(A_BOLD);
		put_begin(SCREEN_HEAD + (int)(i - state->first), text);
		attroff(A_REVERSE | A_BOLD);
	}
	if (screen->rows->n == 0) {
		_cleanup_(freep) char *nothing = wrap(screen->nothing, &(int){ 0 });

		put_lines(SCREEN_HEAD, nothing);
	}
}

static void draw_lines(const struct screen *screen)
{
	size_t height = screen_height(), first = screen->state->first;

	for (size_t i = first; i < screen->n_lines && i < first + height; i++)
		put_begin(SCREEN_HEAD + (int)(i - first), screen->lines[i]);
}

/* Writes a message over the last lines of the screen, as many as it needs. */
static void draw_message(const char *message)
{
	int n;
	_cleanup_(freep) char *lines = wrap(message, &n);

	attron(A_BOLD);
	put_lines(LINES > n ? LINES - n : 0, lines);
	attroff(A_BOLD);
}

static void draw_foot(const struct screen *screen)
{
	const struct top_state *state = screen->state;
	bool has_text = state->pane != PANE_ROWS || screen->rows->n > 0;
	/* Where there are no rows, the trouble is written in their place. */
	const char *message = state->message[0] ? state->message
			      : has_text	? screen->trouble
						: NULL;
	char text[TOP_TEXT + 32];

	if (state->prompt == PROMPT_NONE && message) {
		draw_message(message);
		return;
	}
	if (state->prompt == PROMPT_FILTER)
		snprintf(text, sizeof(text), "thread name, not its id: %s_", state->input);
	else if (state->prompt == PROMPT_TIME)
		snprintf(text, sizeof(text), "time: %s_", state->input);
	else if (state->pane != PANE_ROWS)
		snprintf(text, sizeof(text), "Esc back  Up Down scroll  q quit");
	else
		snprintf(text, sizeof(text),
			 "? help  Enter stacks  w holders  / name  t time  Left Right window  "
			 "q quit");
	attron(A_DIM);
	put(LINES - 1, 0, text);
	attroff(A_DIM);
}

void screen_draw(const struct screen *screen)
{
	erase();
	draw_title(screen);
	draw_tabs(screen);
	draw_totals(screen);
	if (screen->state->pane == PANE_ROWS)
		draw_rows(screen);
	else
		draw_lines(screen);
	draw_foot(screen);
	refresh();
}

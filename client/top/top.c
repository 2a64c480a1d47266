/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/top/top.h"

#include <errno.h>
#include <ncurses.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/snapshot.h"
#include "client/option/options.h"
#include "client/option/range.h"
#include "client/render/coverage.h"
#include "client/render/iolat.h"
#include "client/render/lines.h"
#include "client/render/render.h"
#include "client/top/ask.h"
#include "client/top/base.h"
#include "client/top/picture.h"
#include "client/top/rows.h"
#include "client/top/screen.h"
#include "client/top/state.h"
#include "common/base.h"

/* How often to ask, and after how long without an answer to say so, in ns. */
#define INTERVAL_NS (2 * NS_PER_S)
#define PATIENCE_NS (2 * NS_PER_S)

/*
 * The maximum of rows to ask for, and of lines of a pane. Those of the tab stuck are folded here: a
 * pool must not take the room of others. More than 100 would make the answer wait behind long ones.
 */
enum { ROWS_MOST = 50, STUCK_MOST = 100, LINES_MOST = 10000 };

struct top {
	struct top_state state;
	struct top_ask *ask;
	struct top_answer *answer; /* the newest one with data; NULL: none yet */
	struct top_rows rows;
	struct top_base *base;
	char **lines; /* of a pane of text */
	size_t n_lines;
	char *trouble;	 /* why the last question has no answer, or NULL */
	bool is_nothing; /* there is nothing of what was asked for; the answer is an older one */
	bool asks_again; /* the state changed while a question was under way */
	bool lacks_rows; /* the state changed, and its rows were not asked for yet */
	unsigned int pane_number; /* of the pane of stacks or wakers that was opened last */
	/* The next question, unless it is one about the rows of the tab: TOP_ROWS. */
	enum top_purpose wanted;
	int64_t wanted_pid;	    /* of TOP_WAKERS and TOP_STACKS; 0: of all with wanted_comm */
	char wanted_comm[TOP_TEXT]; /* of TOP_STACKS without a pid */
	const char *wanted_probe;   /* of TOP_STACKS */
	char *holders; /* text of the pane about wakers: who holds what the row waits for */
	int64_t interval_ns;
	int64_t due_ns; /* when to ask again, in ns of CLOCK_MONOTONIC */
};

static void lines_clear(struct top *top)
{
	for (size_t i = 0; i < top->n_lines; i++)
		free(top->lines[i]);
	free(TAKE(top->lines));
	top->n_lines = 0;
}

/* Puts a text into the pane, line by line. */
static void lines_set(struct top *top, const char *text)
{
	lines_clear(top);
	top->lines = must(calloc(LINES_MOST, sizeof(*top->lines)));
	while (*text && top->n_lines < LINES_MOST) {
		size_t n = strcspn(text, "\n");

		top->lines[top->n_lines++] = must(strndup(text, n));
		text += n + (text[n] == '\n');
	}
	top->state.first = 0;
}

static void lines_set_help(struct top *top)
{
	char *text = NULL;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));

	for (const char *const *line = top_help(); *line; line++)
		fprintf(out, "%s\n", *line);
	if (fclose(out) != 0)
		must(NULL);
	lines_set(top, text);
	free(text);
}

static struct view view_of(FILE *out)
{
	return (struct view){
		.page = { .out = out,
			  .width = (size_t)(COLS > 20 ? COLS : 20),
			  .cuts_names = true },
		.verbose = false,
		.by_stack = true,
		.has_keys = true,
	};
}

/* Prints what the threads of a row wait for, and who holds it. */
static void put_stuck(const struct top *top, const struct view *view, const struct top_row *row)
{
	const struct wire_range used = top->answer->waits.reply.coverage.used;
	size_t n = row->entry ? row->entry->n : 1;
	struct wire_row *rows = must(calloc(n, sizeof(*rows)));

	for (size_t i = 0; i < n; i++)
		rows[i] = row->entry ? *row->entry->rows[i] : *row->row;
	render_stuck_rows(view, &(struct wire_rows){ rows, n }, &used);
	free(rows);
}

/*
 * Prints an operation: how often and how long, its place, percentiles and histogram, and how many
 * bytes it moved.
 */
static void put_operation(const struct view *view, const struct wire_snapshot_reply *whole,
			  const struct top_row *row)
{
	const struct wire_io *io = row->row->io;
	double mb = (double)io->bytes / 1e6,
	       seconds = (double)coverage_length(&whole->coverage) / 1e9;
	struct wire_snapshot_reply reply = *whole;
	struct wire_row one = *row->row;
	struct view io_view = *view;

	reply.rows = (struct wire_rows){ &one, 1 };
	reply.rest = (struct wire_rest){ 0 };
	io_view.by_process = !row->is_of_all;
	io_view.histograms = io_view.queued = true;
	fprintf(view->page.out, "%s, %s of the time of I/O", ns_text(row->value),
		share_text(row->value, row->whole));
	/* To discard a block moves no bytes. */
	if (io->bytes > 0 && seconds > 0 && strcmp(io->op, "discard") != 0)
		fprintf(view->page.out, "; %.1f MB, %.1f MB/s", mb, mb / seconds);
	fputs("\n\n", view->page.out);
	render_iolat(&io_view, &reply);
}

/* Fills the pane with what is known about one row: what it waits for, its holders, its stacks. */
static void lines_set_row(struct top *top, const struct top_row *row)
{
	char *text = NULL;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));
	struct view view = view_of(out);

	if (row->is_stuck && !row->row->key) {
		put_stuck(top, &view, row);
	} else if (row->is_io) {
		put_operation(&view, &top->answer->io.reply, row);
	} else {
		_cleanup_(freep) char *title = row_title(&view, row->row);
		_cleanup_(freep) char *state = row->is_sample || !row->row->state
						       ? must(strdup(""))
						       : state_words(row->row);

		fprintf(out, "%s\n%s, %s, %s times%s%s\n\n", title, ns_text(row->value),
			share_text(row->value, row->whole),
			count_text(row->row->count > 0 ? row->row->count : row->row->open),
			state[0] ? ", " : "", state);
		if (row->row->waker)
			render_waker(&view, row->row);
		render_frames(&view, row->row, 2, 0);
	}
	if (fclose(out) != 0)
		must(NULL);
	lines_set(top, text);
	free(text);
}

static const struct wire_snapshot_reply *reply_of(const struct top_answer *answer)
{
	return answer->waits.has_reply	   ? &answer->waits.reply
	       : answer->samples.has_reply ? &answer->samples.reply
	       : answer->io.has_reply	   ? &answer->io.reply
					   : NULL;
}

/* Keeps, for the pane about wakers, who holds what the row, or its longest wait, waits for. */
static void holders_set(struct top *top, const struct top_row *row)
{
	bool is_known = row->row->holders.n > 0 || row->row->object || row->row->holders_unknown;
	_cleanup_(freep) char *title = NULL;
	size_t size;
	FILE *out;
	struct view view;

	free(TAKE(top->holders));
	if (row->row->key || !(is_known || row->is_stuck))
		return;
	out = must(open_memstream(&top->holders, &size));
	view = view_of(out);
	view.hides_kernel = view.hides_user = true;
	if (row->is_stuck) {
		put_stuck(top, &view, row);
	} else {
		title = row_title(&view, row->row);
		fprintf(out, "%s\n", title);
		render_holders(&view, row->row, row->row->count > 1 ? "longest wait: " : "",
			       &reply_of(top->answer)->coverage.used);
	}
	if (fclose(out) != 0)
		must(NULL);
}

static void put_message(const struct view *view, const char *message)
{
	_cleanup_(freep) char *text = name_escape(message);

	page_wrap(&view->page, STYLE_PLAIN, "", 0, "%s", text);
}

/* Fills the pane with the answer about who ended waits, or with stacks. */
static void lines_set_answer(struct top *top, const struct top_answer *answer)
{
	bool is_of_wakers = answer->question.purpose == TOP_WAKERS;
	const struct wire_snapshot_reply *reply = reply_of(answer);
	char *text = NULL;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));
	struct view view = view_of(out);

	if (is_of_wakers && top->holders)
		fprintf(out, "%s\nwho ended waits of this process before:\n", top->holders);
	if (answer->message)
		put_message(&view, answer->message);
	else if (reply)
		render_text(&view, reply);
	if (fclose(out) != 0)
		must(NULL);
	lines_set(top, text);
	free(text);
}

static struct top_shown shown_of(const struct top *top)
{
	const struct wire_snapshot_reply *reply = top->answer ? reply_of(top->answer) : NULL;
	struct top_shown shown = {
		.now = clock_ns(CLOCK_REALTIME),
		.rows = top->state.pane == PANE_ROWS ? top->rows.n : top->n_lines,
		.height = screen_height(),
		.step_ns = TOP_GAP_STEP_NS,
	};

	if (reply) {
		shown.start = reply->coverage.used.start;
		shown.end = reply->coverage.used.end;
		shown.has_windows = reply->coverage.windows > 0;
		/* A filter may have nothing in one window, and something in the next. */
		if (top->state.filter[0] && shown.has_windows)
			shown.step_ns = coverage_length(&reply->coverage);
	}
	if (top->is_nothing && top->state.since_ns) {
		shown.start = top->state.since_ns;
		shown.end = top->state.until_ns;
		shown.has_windows = false;
	}
	return shown;
}

/* Asks for what the state says, or as soon as the question under way is answered. */
static void ask_now(struct top *top)
{
	const size_t height = screen_height();
	const size_t least =
		top->wanted == TOP_ROWS && top_is_folded(&top->state) ? STUCK_MOST : ROWS_MOST;
	struct top_question question = {
		.state = top->state,
		.window_ns = top->interval_ns,
		.top = top->state.tab == TAB_OVERVIEW ? (int64_t)(height / 4 > 1 ? height / 4 : 1)
						      : (int64_t)(height > least ? height : least),
	};
	int r;

	if (top_ask_is_busy(top->ask)) {
		top->asks_again = true;
		return;
	}
	if (top->wanted != TOP_ROWS) {
		const struct top_shown shown = shown_of(top);

		question.purpose = top->wanted;
		question.pane_number = top->pane_number;
		question.span = (struct wire_span){ shown.start, shown.end };
		question.pid = top->wanted_pid;
		memcpy(question.comm, top->wanted_comm, sizeof question.comm);
		question.probe = top->wanted_probe;
		if (top->wanted == TOP_PICTURE)
			question.top = 0;
		top->wanted = TOP_ROWS;
		top->asks_again = top->lacks_rows;
	} else {
		top->asks_again = top->lacks_rows = false;
	}
	r = top_ask_begin(top->ask, &question);
	if (r < 0)
		snprintf(top->state.message, sizeof(top->state.message), "cannot ask: %s",
			 strerror(-r));
	top->due_ns = clock_ns(CLOCK_MONOTONIC) + top->interval_ns;
}

/* True if the answer is to what the screen shows now. */
static bool answer_fits(const struct top *top, const struct top_answer *answer)
{
	const struct top_state *asked = &answer->question.state, *now = &top->state;

	return top_asks_same(asked, now) && asked->since_ns == now->since_ns &&
	       asked->until_ns == now->until_ns;
}

/*
 * Takes an answer about rows. If there is nothing of what was asked for, no rows are left, and the
 * answer before it is only kept for its time.
 */
static void take_rows(struct top *top, struct top_answer *answer)
{
	if (!answer_fits(top, answer)) {
		top_answer_free(answer);
		return;
	}
	free(top->trouble);
	top->trouble = answer->message ? name_escape(answer->message) : NULL;
	if (answer->message && !answer->is_nothing) {
		top_answer_free(answer);
		return;
	}
	top_rows_fini(&top->rows);
	top->is_nothing = answer->is_nothing;
	if (answer->is_nothing) {
		top_answer_free(answer);
		return;
	}
	top_answer_free(top->answer);
	top->answer = answer;
	top_rows_init(&top->rows, top->answer);
	if (top->state.pane == PANE_ROWS)
		top_fit(&top->state, top->rows.n, screen_height());
}

static void take_answer(struct top *top)
{
	struct top_answer *answer = top_ask_take(top->ask);

	if (answer->question.purpose == TOP_WAKERS || answer->question.purpose == TOP_STACKS) {
		if (answer->question.pane_number == top->pane_number &&
		    top->state.pane ==
			    (answer->question.purpose == TOP_WAKERS ? PANE_WAKERS : PANE_STACKS))
			lines_set_answer(top, answer);
		top_answer_free(answer);
	} else if (answer->question.purpose == TOP_PICTURE) {
		picture_write(answer, top->state.message, sizeof(top->state.message));
		top_answer_free(answer);
	} else {
		take_rows(top, answer);
	}
	if (top->asks_again)
		ask_now(top);
}

static bool row_has_process(const struct top_row *row)
{
	return row->row->process.pid > 0 && !row->row->key && !row->is_of_all;
}

/*
 * Sets the name to ask for: the row's, whose * stands for digits. What else has a meaning in a
 * pattern is escaped.
 */
static void wanted_comm_set(struct top *top, const char *comm)
{
	size_t n = 0;

	for (; *comm && n + 2 < sizeof top->wanted_comm; comm++) {
		if (strchr("[?\\", *comm))
			top->wanted_comm[n++] = '\\';
		top->wanted_comm[n++] = *comm;
	}
	top->wanted_comm[n] = '\0';
}

/*
 * Shows the stacks of a row. One of the overview has none: then asks for those of its process or,
 * if it is of several, of the threads with its name.
 */
static void open_stacks(struct top *top)
{
	const struct top_row *row = &top->rows.v[top->state.selected];
	bool is_line = row->class || row->is_ready;

	top->pane_number++;
	if (!is_line || row->is_io || row->row->own == 1 || row->row->kernel || row->row->user) {
		top->state.pane = PANE_STACKS;
		lines_set_row(top, row);
		return;
	}
	top->state.pane = PANE_STACKS;
	lines_set(top, "asking ...");
	top->wanted = TOP_STACKS;
	top->wanted_pid = row_has_process(row) ? row->row->process.pid : 0;
	wanted_comm_set(top, row_has_process(row) ? "" : row->row->comm);
	top->wanted_probe = row->is_sample ? "oncpu" : "offcpu";
	ask_now(top);
}

static void open_wakers(struct top *top)
{
	const struct top_row *row = &top->rows.v[top->state.selected];

	top->pane_number++;
	holders_set(top, row);
	if (!row_has_process(row) && !top->holders) {
		snprintf(top->state.message, sizeof(top->state.message),
			 "the row is not of one process");
		return;
	}
	top->state.pane = PANE_WAKERS;
	lines_set(top, top->holders ? top->holders : "asking ...");
	if (!row_has_process(row))
		return;
	top->wanted = TOP_WAKERS;
	top->wanted_pid = row->row->process.pid;
	top->wanted_comm[0] = '\0';
	ask_now(top);
}

/* Asks for all rows of the tab, to write them to a file. */
static void open_picture(struct top *top)
{
	snprintf(top->state.message, sizeof(top->state.message), "asking for the picture ...");
	top->wanted = TOP_PICTURE;
	top->wanted_pid = 0;
	top->wanted_comm[0] = '\0';
	ask_now(top);
}

/* True if there is a base, and the rows on the screen can be compared with it. */
static bool is_compared(const struct top *top)
{
	return top->base && top->answer && top_base_fits(top->base, &top->state) &&
	       top_base_fits(top->base, &top->answer->question.state);
}

/* Marks the present answer as the base, or forgets the base if it is the one of these rows. */
static void mark(struct top *top)
{
	const struct wire_snapshot_reply *reply = top->answer ? reply_of(top->answer) : NULL;
	bool had_base = is_compared(top);
	struct top_base *base = NULL;

	if (top->state.tab == TAB_STUCK) {
		snprintf(top->state.message, sizeof(top->state.message),
			 "the age of a wait is no change: compare what is blocked");
		return;
	}
	if (!had_base && reply)
		base = top_base_new(&top->rows, top->answer, coverage_length(&reply->coverage));
	if (had_base || base) {
		top_base_free(top->base);
		top->base = base;
	}
	snprintf(top->state.message, sizeof(top->state.message), "%s",
		 had_base ? "the base is forgotten"
		 : base	  ? "this is the base now: CHANGE is against it, for the same time"
			  : "there is nothing to compare with");
}

/* Handles a key. Returns false if the user quits. */
static bool on_key(struct top *top, int key)
{
	const struct top_shown shown = shown_of(top);
	const struct top_state before = top->state;

	switch (top_key(&top->state, key, &shown)) {
	case ACTION_QUIT:
		return false;
	case ACTION_ASK:
		top->lacks_rows = true;
		ask_now(top);
		break;
	case ACTION_STACKS:
		open_stacks(top);
		break;
	case ACTION_WAKERS:
		open_wakers(top);
		break;
	case ACTION_MARK:
		mark(top);
		break;
	case ACTION_PICTURE:
		open_picture(top);
		break;
	case ACTION_NONE:
	case ACTION_DRAW:
		break;
	}
	/* Rows of another tab, or of other names, are no answer to this question. */
	if (top->state.tab != before.tab || strcmp(top->state.filter, before.filter) != 0) {
		top_rows_fini(&top->rows);
		free(TAKE(top->trouble));
	}
	if (top->state.pane == PANE_HELP && before.pane != PANE_HELP)
		lines_set_help(top);
	/* There may be fewer rows than before a pane of text was opened. */
	if (top->state.pane == PANE_ROWS)
		top_fit(&top->state, top->rows.n, screen_height());
	return true;
}

/* Returns what there is to say in place of rows. */
static const char *nothing_text(const struct top *top, const char *trouble)
{
	if (trouble)
		return trouble;
	if (!top->answer || !top_asks_same(&top->answer->question.state, &top->state))
		return "asking ...";
	return "nothing to show: nothing of this was recorded in this time";
}

static void draw(const struct top *top)
{
	struct screen screen = {
		.state = &top->state,
		.answer = top->is_nothing ? NULL : top->answer,
		.rows = &top->rows,
		.base = is_compared(top) ? top->base : NULL,
		.has_base = top->base != NULL,
		.lines = top->lines,
		.n_lines = top->n_lines,
		.trouble = top->trouble,
	};
	int64_t waited = clock_ns(CLOCK_MONOTONIC) - top_ask_since(top->ask);
	char text[128];

	if (top_ask_is_busy(top->ask) && waited > PATIENCE_NS) {
		snprintf(text, sizeof(text), "the daemon has not answered for %s",
			 ns_text(waited / NS_PER_S * NS_PER_S));
		screen.trouble = text;
	}
	screen.nothing = nothing_text(top, screen.trouble);
	screen_draw(&screen);
}

/* Returns how long to wait for a key or an answer, in ms. */
static int timeout_ms(const struct top *top)
{
	int64_t left = top->due_ns - clock_ns(CLOCK_MONOTONIC);

	if (top_ask_is_busy(top->ask) || left < 0)
		return 500;
	return (int)(left / NS_PER_MS) + 1;
}

/* Waits for keys, answers and the time to ask again. Returns false if the user quits. */
static bool step(struct top *top)
{
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				{ .fd = top_ask_fd(top->ask), .events = POLLIN } };
	bool is_live = !top->state.since_ns;
	int key;

	if (poll(fds, ARRAY_SIZE(fds), timeout_ms(top)) < 0 && errno != EINTR)
		return false;
	if (fds[0].revents & (POLLHUP | POLLERR))
		return false;
	while ((key = getch()) != ERR)
		if (!on_key(top, key))
			return false;
	if (top_ask_is_busy(top->ask) && fds[1].revents & POLLIN)
		take_answer(top);
	if (!top_ask_is_busy(top->ask) && clock_ns(CLOCK_MONOTONIC) >= top->due_ns &&
	    (is_live || top->trouble))
		ask_now(top);
	return true;
}

static enum exit_code terminal_open(void)
{
	const char *term = getenv("TERM");

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		print_message("top needs a terminal; stackctl snapshot and watch print to files");
		return EXIT_CODE_USAGE;
	}
	if (!term || !term[0] || strcmp(term, "dumb") == 0 || !newterm(term, stdout, stdin)) {
		print_message("top cannot use %s%s%s; stackctl snapshot and watch print lines",
			      term && term[0] ? "a terminal of the type \"" : "this terminal: ",
			      term && term[0] ? term : "$TERM is not set",
			      term && term[0] ? "\" ($TERM)" : "");
		return EXIT_CODE_USAGE;
	}
	raw();
	noecho();
	nonl();
	keypad(stdscr, true);
	nodelay(stdscr, true);
	set_escdelay(50);
	curs_set(0);
	return EXIT_CODE_OK;
}

enum exit_code top_run(const struct options *options)
{
	struct top top = {
		.interval_ns =
			options->interval_ns == WIRE_ABSENT ? INTERVAL_NS : options->interval_ns,
	};
	enum exit_code code = terminal_open();

	if (code != EXIT_CODE_OK)
		return code;
	top.ask = top_ask_new(options);
	ask_now(&top);
	do
		draw(&top);
	while (step(&top));
	endwin();
	/* A question that is still under way ends with the program. */
	lines_clear(&top);
	top_rows_fini(&top.rows);
	top_base_free(top.base);
	top_answer_free(top.answer);
	free(top.trouble);
	free(top.holders);
	return EXIT_CODE_OK;
}

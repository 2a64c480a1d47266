/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/call.h"
#include "client/call/output.h"
#include "client/call/recording.h"
#include "client/call/snapshot.h"
#include "client/render/formats.h"
#include "client/verb/verb.h"
#include "common/base.h"
#include "proto/codec.h"

#define INTERVAL_NS (2 * NS_PER_S)

/* After how many intervals without an answer, and after how many seconds, to say why. */
enum { PATIENCE_INTERVALS = 3, PATIENCE_LEAST = 10, PATIENCE_MOST = 3600 };

struct watch {
	const struct options *options;
	struct collection collection;
	bool has_answer; /* the call that lasts has brought one, and it was printed */
};

/*
 * Returns the number of screen lines that a line of text takes: a long line continues on the next
 * one.
 */
static size_t line_height(const char *line, size_t len, size_t columns)
{
	_cleanup_(freep) char *plain = must(strndup(line, len));
	char *to = plain;
	size_t width;

	/* Leave out escape sequences of colours, which take no columns. */
	for (const char *from = plain; *from;) {
		size_t escape = *from == '\033' ? strcspn(from, "m") : 0;

		if (escape)
			from += escape + (from[escape] == 'm');
		else
			*to++ = *from++;
	}
	*to = '\0';
	width = text_columns(plain);
	return width > 0 ? (width - 1) / columns + 1 : 1;
}

/* Clears the screen and prints the first lines of the text, as many as the screen holds. */
static void print_screen(const char *text)
{
	size_t lines, columns, left;
	const char *end = text, *line;

	term_size(STDOUT_FILENO, &lines, &columns);
	left = lines - 1;
	while (*end) {
		size_t height;

		line = end;
		end = strchrnul(line, '\n');
		height = line_height(line, (size_t)(end - line), columns);
		if (height > left) {
			end = line;
			break;
		}
		left -= height;
		if (*end)
			end++;
	}
	fputs("\033[H\033[2J", stdout);
	fwrite(text, 1, (size_t)(end - text), stdout);
}

/* Reverses the order of the rows, for --reverse: the daemon always sends the largest row first. */
static void rows_reverse(struct wire_row *rows, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		struct wire_row row = rows[i];

		rows[i] = rows[n - 1 - i];
		rows[n - 1 - i] = row;
	}
}

static int print_answer(const struct watch *watch)
{
	bool is_terminal = term_is_terminal(STDOUT_FILENO) && watch->options->format->is_for_people;
	_cleanup_(freep) char *text = NULL;
	struct options options = *watch->options;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));
	/* The text is printed into memory first, with the width and the colours of the terminal. */
	struct view view = snapshot_view(&options, is_terminal ? stdout : out);

	view.page.out = out;
	if (options.reverse)
		rows_reverse(watch->collection.rows, watch->collection.n);
	snapshot_render(&options, &view, false, &watch->collection.reply);
	if (fclose(out) != 0)
		return -ENOMEM;
	if (is_terminal && term_has_escapes(STDOUT_FILENO))
		print_screen(text);
	else
		printf("%s%s", text, options.format->is_for_people ? "\n" : "");
	return output_flush(stdout, NULL);
}

static void collection_clear(struct collection *collection)
{
	free(collection->rows);
	arena_free(collection->arena);
	*collection = (struct collection){ .arena = must(arena_new()) };
}

/*
 * Adds a reply to the answer. When all rows of the answer have come (reply.shown.rows is their
 * number), prints the answer.
 */
static int on_reply(const struct varlink_message *message, void *context)
{
	struct watch *watch = context;
	struct collection *collection = &watch->collection;
	int r = collection_add(message, collection);

	if (r < 0 || (int64_t)collection->n < collection->reply.shown.rows)
		return r;
	r = print_answer(watch);
	watch->has_answer = r == 0;
	collection_clear(collection);
	return r;
}

/*
 * Makes the call. On a terminal, a person watches: when the daemon has ended, waits until another
 * one answers, and goes on. A program that reads the answers has to know that some are missing.
 */
static enum exit_code watch_run(struct watch *watch, const struct text *request, time_t patience)
{
	enum exit_code code;

	for (;;) {
		watch->has_answer = false;
		code = call_follow(watch->options, request, patience, on_reply, watch);
		if (code != EXIT_CODE_IO || !watch->has_answer || !term_is_terminal(STDOUT_FILENO))
			return code;
		print_message("waiting for it to start again; Ctrl-C ends");
		do {
			sleep(1);
			/* A terminal that was closed is none any more. */
			if (call_was_interrupted() || !term_is_terminal(STDOUT_FILENO))
				return EXIT_CODE_OK;
		} while (!call_is_answered(watch->options));
		collection_clear(&watch->collection);
	}
}

/* Returns after how many seconds without an answer to say why there is none. */
static time_t patience_of(int64_t interval_ns)
{
	int64_t seconds = interval_ns / NS_PER_S * PATIENCE_INTERVALS;

	if (seconds > PATIENCE_MOST)
		return PATIENCE_MOST;
	return seconds > PATIENCE_LEAST ? seconds : PATIENCE_LEAST;
}

enum exit_code cmd_watch(struct options *options)
{
	struct watch watch = { .options = options };
	struct snapshot_request parts;
	struct wire_follow_request request;
	enum exit_code code;
	struct text text;

	if (!options->argument || options->argument[0] == '\0')
		return recording_report_choice("watch");
	if (snapshot_request_init(&parts, options, options->argument, false,
				  clock_ns(CLOCK_REALTIME)) < 0) {
		print_message("%s", options->message);
		return EXIT_CODE_USAGE;
	}
	snapshot_request_set_lines(&parts, options);
	request = (struct wire_follow_request){
		.probe = parts.request.probe,
		.session = parts.request.session,
		.interval_ns =
			options->interval_ns == WIRE_ABSENT ? INTERVAL_NS : options->interval_ns,
		.filter = &parts.filter,
		.by = parts.request.by,
		.sort = parts.request.sort,
		.top = parts.request.top,
		.idle = parts.request.idle,
		.addresses = parts.request.addresses,
		.fold_own = parts.request.fold_own,
		.groups = parts.request.groups,
	};
	collection_clear(&watch.collection);
	text_init(&text, VARLINK_MAX_REPLY);
	follow_request_encode(&request, VARLINK_MORE, &text);
	call_catch_signals();
	code = watch_run(&watch, &text, patience_of(request.interval_ns));
	/* The terminal has put ^C behind the last line: the prompt does not follow it there. */
	if (call_was_interrupted() && term_is_terminal(STDOUT_FILENO))
		fputc('\n', stdout);
	text_fini(&text);
	free(watch.collection.rows);
	arena_free(watch.collection.arena);
	return code;
}

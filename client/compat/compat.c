/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/compat/compat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/call.h"
#include "client/call/fetch.h"
#include "client/call/output.h"
#include "client/call/recording.h"
#include "client/call/snapshot.h"
#include "client/render/comments.h"
#include "common/base.h"
#include "proto/codec.h"

/* A recording, and how much of it has been printed. */
struct tracing {
	/*
	 * Must be the first member: handlers cast a pointer to `recording` to a pointer to struct
	 * tracing.
	 */
	struct recording recording;
	struct compat_run *run;
	bool has_header;
	/*
	 * Events up to this time have been printed, in ns since 1970; WIRE_ABSENT: none have been.
	 */
	int64_t printed;
};

const char *compat_stacks(const struct compat_run *run)
{
	if (run->options.user_stacks)
		return "user";
	return run->options.kernel_stacks ? "kernel" : "user + kernel";
}

void compat_print_threads(FILE *out, const struct compat_run *run, unsigned group)
{
	switch (run->letters[group]) {
	case 'p':
		fprintf(out, "PID %s", run->chosen[group]);
		break;
	case 't':
	case 'L':
		fprintf(out, "TID %s", run->chosen[group]);
		break;
	case 'u':
		fputs("user threads", out);
		break;
	case 'k':
		fputs("kernel threads", out);
		break;
	default:
		fputs("all threads", out);
	}
}

void compat_print_us(FILE *out, const struct compat_entry *entry)
{
	fprintf(out, "%" PRId64, entry->value / NS_PER_US);
}

void compat_print_length(FILE *out, const struct compat_run *run)
{
	if (run->duration)
		fprintf(out, " for %lld secs.\n", strtoll(run->duration, NULL, 10));
	else
		fputs("... Hit Ctrl-C to end.\n", out);
}

static void print_time(FILE *out, int64_t now)
{
	char text[TERM_TIME_MAX];

	time_format(now, TIME_CLOCK, text);
	fprintf(out, "%s\n", text);
}

static enum exit_code fetch(const struct tracing *t, struct collection *collection)
{
	struct wire_snapshot_request request = wire_snapshot_request_absent();
	_cleanup_(text_fini) struct text text = {};

	request.session = t->recording.session.id;
	request.since_ns = t->printed;
	request.top = 0;
	request.idle = 1;
	text_init(&text, VARLINK_MAX_REPLY);
	snapshot_request_encode(&request, VARLINK_MORE, &text);
	return call_run(&t->run->options, &text, collection_add, collection);
}

/* Prints a line about what an answer lacks. The layouts of these tools have no place for it. */
static void put_loss(void *context, const char *line)
{
	print_message("%s", line);
}

/* Prints the events that were recorded since the last answer was printed. */
static enum exit_code print_answer(struct tracing *t)
{
	const struct compat_run *run = t->run;
	struct collection collection = { .arena = must(arena_new()) };
	enum exit_code code = fetch(t, &collection);
	size_t n;

	if (code == EXIT_CODE_OK && collection.has_reply) {
		if (!run->is_folded)
			fputc('\n', stdout);
		if (run->has_timestamps)
			print_time(stdout, collection.reply.coverage.used.end);
		n = compat_render(stdout, run, &collection.reply);
		comments_of_losses(&collection.reply, put_loss, NULL);
		if (n == 0 && run->interval_ns == 0 && collection.reply.totals.waits != WIRE_ABSENT)
			print_message(
				"no wait that was asked for ended meanwhile; stackctl stuck shows "
				"who waits still");
		if (output_flush(stdout, NULL) < 0)
			code = EXIT_CODE_IO;
		t->printed = collection.reply.coverage.used.end;
	}
	free(collection.rows);
	arena_free(collection.arena);
	return code;
}

static void print_header(struct tracing *t)
{
	const struct wire_session *session = &t->recording.session;

	t->run->functions = session->functions == WIRE_ABSENT ? 0 : session->functions;
	if (!t->has_header && !t->run->is_folded) {
		t->run->tool->print_header(stdout, t->run);
		fflush(stdout);
	}
	if (!t->has_header && session->note)
		print_message("%s", session->note);
	t->has_header = true;
}

static int on_calls(const struct recording *recording, const struct wire_calls *calls)
{
	struct tracing *t = (struct tracing *)recording;

	print_header(t);
	if (t->run->tool->print_calls)
		t->run->tool->print_calls(stdout, t->run, recording->session.since, calls);
	return output_flush(stdout, NULL);
}

/* Reports how many calls were not printed, and why. */
static void report_held(const struct recording *recording)
{
	const struct wire_session *session = &recording->session;

	if (session->held != WIRE_ABSENT && session->held > 0)
		print_message("%s of %s calls were not printed: there were more than %s a second",
			      count_text(session->held), count_text(session->count),
			      count_text(session->rate));
	if (recording->missed > 0)
		print_message("%s calls were missed: the output was read too slowly",
			      count_text(recording->missed));
}

/* Prints an answer when an interval has passed. Called each second while the session lasts. */
static int on_progress(const struct recording *recording)
{
	struct tracing *t = (struct tracing *)recording;
	const struct wire_session *session = &recording->session;
	const struct compat_run *run = t->run;
	int64_t begin = t->printed == WIRE_ABSENT ? session->since : t->printed;

	print_header(t);
	if (run->interval_ns == 0 || session->ended != WIRE_ABSENT)
		return 0;
	/*
	 * Replies come about once a second: print at the one that is nearest to the end of the
	 * interval.
	 */
	if (clock_ns(CLOCK_REALTIME) - begin < run->interval_ns - NS_PER_S / 2)
		return 0;
	return print_answer(t) == EXIT_CODE_IO ? -EIO : 0;
}

static void tracing_fini(struct tracing *t)
{
	recording_fini(&t->recording);
}

/* Records until the session ends. Prints answers at each interval, or one answer at the end. */
static enum exit_code record(struct compat_run *run)
{
	_cleanup_(tracing_fini) struct tracing t = {
		.recording = { .on_progress = on_progress, .on_calls = on_calls },
		.run = run,
		.printed = WIRE_ABSENT,
	};
	const struct wire_session *session = &t.recording.session;
	struct output output;
	enum exit_code code, written;

	output_open(&output, NULL, NULL, NULL, 0);
	call_catch_signals();
	code = recording_start(&run->options, true, &t.recording);
	if (code != EXIT_CODE_OK)
		return code;
	if (!t.recording.has_session)
		return EXIT_CODE_NO_DATA;
	recording_end(&run->options, &t.recording);
	if (run->tool->print_calls)
		report_held(&t.recording);
	else if (t.printed == WIRE_ABSENT || session->ended == WIRE_ABSENT ||
		 session->ended > t.printed)
		code = print_answer(&t);
	if (run->tool->has_calls && !run->is_folded)
		fputs("Detaching...\n", stdout);
	written = output_close(&output);
	return code != EXIT_CODE_OK ? code : written;
}

static enum exit_code print_programs(const struct compat_run *run)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	struct wire_probes_reply reply;
	struct output output;
	enum exit_code code;

	code = FETCH(&run->options, probes, NULL, arena, &reply);
	if (code != EXIT_CODE_OK)
		return code;
	output_open(&output, NULL, NULL, NULL, 0);
	for (size_t i = 0; i < reply.probes.n; i++) {
		const struct wire_probe *probe = &reply.probes.v[i];

		if (strcmp(probe->name, run->tool->probe) != 0)
			continue;
		fprintf(output.out, "probe %s, by %s\n", probe->name,
			probe->hook ? probe->hook : "no hook");
		for (size_t j = 0; j < probe->programs.n; j++)
			fprintf(output.out, "program %s on %s, %" PRId64 " instructions verified\n",
				probe->programs.v[j].name, probe->programs.v[j].hook,
				probe->programs.v[j].verified_insns);
		if (probe->programs.n == 0)
			print_message(
				"%s is not always on: its programs are loaded when a recording starts",
				probe->name);
	}
	return output_close(&output);
}

static enum exit_code print_help(const struct compat_tool *tool)
{
	struct output output;

	output_open(&output, NULL, NULL, NULL, 0);
	compat_print_help(output.out, tool);
	return output_close(&output);
}

enum exit_code compat_main(const struct compat_tool *tool, const char *socket, int argc,
			   char **argv)
{
	struct compat_run run = { .tool = tool };

	options_init(&run.options);
	run.options.socket = socket;
	if (compat_parse(&run, argc, argv) < 0) {
		print_message("%s", run.options.message);
		return EXIT_CODE_USAGE;
	}
	if (run.help)
		return print_help(tool);
	if (run.shows_programs)
		return print_programs(&run);
	if (run.has_storage)
		print_message(
			"--stack-storage-size has no effect: the daemon's own tables are used; "
			"stackctl sessions shows what these could not hold");
	return record(&run);
}

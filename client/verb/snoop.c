/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdint.h>
#include <stdio.h>

#include "client/base/message.h"
#include "client/call/call.h"
#include "client/call/output.h"
#include "client/call/recording.h"
#include "client/call/snapshot.h"
#include "client/render/formats.h"
#include "client/verb/verb.h"
#include "proto/codec.h"

struct snoop {
	/*
	 * Must be the first member: handlers cast a pointer to `recording` to a pointer to struct
	 * snoop.
	 */
	struct recording recording;
	const struct options *options;
	struct view view;
	size_t printed; /* number of calls that were printed */
};

static int print_calls(const struct recording *recording, const struct wire_calls *calls)
{
	struct snoop *snoop = (struct snoop *)(uintptr_t)recording;

	snoop->printed += calls->n;
	for (size_t i = 0; i < calls->n; i++)
		snoop->options->format->call(&snoop->view, &calls->v[i]);
	/* Flush, so that a program that reads the output gets each call at once. */
	return output_flush(snoop->view.page.out, NULL);
}

/* Reports how many calls were not printed, and why. */
static void report_missing(const struct recording *recording)
{
	const struct wire_session *session = &recording->session;

	if (session->held != WIRE_ABSENT && session->held > 0)
		print_message(
			"%s of %s calls were not printed: there were more than --rate %s a second",
			count_text(session->held), count_text(session->count),
			count_text(session->rate));
	if (recording->missed > 0)
		print_message("%s calls were missed: the output was read too slowly",
			      count_text(recording->missed));
	for (size_t i = 0; i < session->lost.n; i++)
		if (session->lost.v[i].count > 0)
			print_message("lost, %s: %s", session->lost.v[i].reason,
				      count_text(session->lost.v[i].count));
	if (session->note)
		print_message("%s", session->note);
}

/* Reports that there were no calls, as an empty output could also be a fault. */
static void report_nothing(const struct snoop *snoop)
{
	const struct wire_session *session = &snoop->recording.session;
	bool is_filtered = options_name_somebody(snoop->options);

	if (snoop->printed == 0 && snoop->recording.missed == 0 &&
	    (session->count == WIRE_ABSENT || session->count == 0))
		print_message("no call of %s%s was seen", snoop->options->function,
			      is_filtered ? " by a thread of the filter" : "");
}

enum exit_code cmd_snoop(struct options *options)
{
	struct snoop snoop = {
		.recording = { .on_calls = print_calls },
		.options = options,
	};
	struct output output;
	enum exit_code code, written;

	if (!options->argument || options->argument[0] == '\0') {
		print_message("snoop needs a function, as in: stackctl snoop vfs_fsync_range, "
			      "t:sched:sched_process_exec or u:c:getaddrinfo");
		return EXIT_CODE_USAGE;
	}
	options->function = options->argument;
	options->argument = "stacksnoop";
	output_open(&output, NULL, NULL, NULL, 0);
	snoop.view = snapshot_view(options, output.out);
	snoop.view.keeps_scheduler = true;
	call_catch_signals();
	code = recording_start(options, true, &snoop.recording);
	if (snoop.recording.has_session) {
		report_missing(&snoop.recording);
		report_nothing(&snoop);
	}
	recording_fini(&snoop.recording);
	written = output_close(&output);
	return code != EXIT_CODE_OK ? code : written;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <unistd.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/call.h"
#include "client/call/recording.h"
#include "client/call/snapshot_run.h"
#include "client/render/coverage.h"
#include "client/render/page.h"
#include "client/verb/verb.h"
#include "common/base.h"
#include "common/probe_kind.h"

/*
 * Prints the progress of the recording, once a second, over the line that was printed before.
 * Truncates the text to the width of the terminal, so that it stays a single line.
 */
static int on_progress(const struct recording *recording)
{
	const struct wire_session *session = &recording->session;
	enum probe_kind kind;
	const char *what =
		probe_kind_find(session->probe, &kind) ? probe_kind_events(kind) : "events";
	int64_t now = clock_ns(CLOCK_REALTIME), seconds = (now - session->since) / NS_PER_S;
	char counted[64] = "", whole[64] = "", text[256];
	size_t lines, columns;

	/* The number of events is not known before the first window has ended. */
	if (session->count != WIRE_ABSENT && session->count > 0)
		snprintf(counted, sizeof counted, ", %s %s", count_text(session->count), what);
	if (session->until != WIRE_ABSENT)
		snprintf(whole, sizeof whole, " of %s", ns_text(session->until - session->since));
	snprintf(text, sizeof text, "%s: %s%s%s, lost %s%s", session->probe,
		 ns_text((seconds > 0 ? seconds : 0) * NS_PER_S), whole, counted,
		 count_text(lost_count(&session->lost)),
		 session->until == WIRE_ABSENT ? "; Ctrl-C ends" : "");
	term_size(STDERR_FILENO, &lines, &columns);
	if (term_has_escapes(STDERR_FILENO))
		fprintf(stderr, "\r%.*s\033[K", (int)columns - 1, text);
	else if (session->ended != WIRE_ABSENT)
		fputs(text, stderr);
	if (session->ended != WIRE_ABSENT)
		fputc('\n', stderr);
	return 0;
}

/*
 * Prints the whole recorded session. First clears the filter in the options, because the daemon has
 * already applied it while it recorded.
 */
static enum exit_code print_session(const struct options *options, const char *id)
{
	struct options plain = *options;
	enum exit_code code;
	int64_t threads;

	plain.pids.n = plain.tids.n = plain.cpus.n = plain.states.n = 0;
	plain.user_threads = plain.kernel_threads = false;
	plain.min_block_ns = plain.max_block_ns = WIRE_ABSENT;
	/* Several names were not recorded apart: the answer has to pick them. */
	plain.comms.n = plain.comms.n > 1 ? plain.comms.n : 0;
	plain.cgroups.n = plain.cgroups.n > 1 ? plain.cgroups.n : 0;
	plain.units.n = plain.units.n > 1 ? plain.units.n : 0;
	code = snapshot_run_seen(&plain, id, false, &threads);
	if (code == EXIT_CODE_BUSY)
		print_message("what was recorded is kept for a while: stackctl snapshot %s", id);
	/*
	 * The daemon refuses pids that do not exist. But it accepts the name of a thread, cgroup or
	 * unit that does not exist, so report such a name here.
	 */
	if (code != EXIT_CODE_OK || threads > 0 ||
	    (!options->comms.n && !options->cgroups.n && !options->units.n))
		return code;
	print_message("no thread %s%s%s was seen",
		      options->comms.n	   ? "of comm "
		      : options->cgroups.n ? "in cgroup "
					   : "of unit ",
		      options->comms.n	   ? options->comms.v[0]
		      : options->cgroups.n ? options->cgroups.v[0]
					   : options->units.v[0],
		      options->comms.n + options->cgroups.n + options->units.n > 1
			      ? ", nor one that the other names select,"
			      : "");
	return EXIT_CODE_NO_DATA;
}

/*
 * Returns the options with which to record. A session has no exceptions, and one name of a kind:
 * the answer picks the others.
 */
static struct options recorded_options(const struct options *options)
{
	struct options recorded = *options;

	options_drop_picks(&recorded);
	recorded.comms.n = recorded.comms.n > 1 ? 0 : recorded.comms.n;
	recorded.cgroups.n = recorded.cgroups.n > 1 ? 0 : recorded.cgroups.n;
	recorded.units.n = recorded.units.n > 1 ? 0 : recorded.units.n;
	return recorded;
}

enum exit_code cmd_record(struct options *options)
{
	_cleanup_(recording_fini) struct recording recording = {};
	const struct options recorded = recorded_options(options);
	bool is_terminal = isatty(STDERR_FILENO);
	enum exit_code code;

	if (!options->argument || options->argument[0] == '\0')
		return recording_report_choice("record");
	code = recording_check_probe(options);
	if (code != EXIT_CODE_OK)
		return code;
	if (options->duration_ns == WIRE_ABSENT && !is_terminal) {
		print_message(
			"record needs --for unless there is a terminal to end it, as in --for "
			"20s");
		return EXIT_CODE_USAGE;
	}
	if (is_terminal)
		recording.on_progress = on_progress;
	call_catch_signals();
	code = recording_start(&recorded, true, &recording);
	if (call_was_interrupted() && is_terminal)
		fputc('\n', stderr);
	if (code == EXIT_CODE_IO && recording.has_session)
		print_message(
			"once the daemon is there again, this shows what was recorded: stackctl snapshot %s",
			recording.session.id);
	if (code != EXIT_CODE_OK)
		return code;
	if (!recording.has_session)
		return EXIT_CODE_NO_DATA;
	recording_end(&recorded, &recording);
	return print_session(options, recording.session.id);
}

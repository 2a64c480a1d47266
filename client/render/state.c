/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/render.h"
#include "common/base.h"
#include "common/wait_reason.h"

/*
 * The kernel's TASK_WAKEKILL (include/linux/sched.h): kill -9 ends the wait, although its state is
 * D.
 */
enum { STATE_BIT_WAKEKILL = 0x100 };

static const struct {
	const char *state;
	const char *words;
} state_table[] = {
	{ "S", "S sleeping" },
	{ "D", "D uninterruptible" },
	{ "I", "I idle, not in the load" },
	{ "R", "R ready, waiting for a CPU" },
	{ "preempted", "R ready, waiting for a CPU" },
	{ "new", "R new thread, waiting for its first CPU" },
	{ "T", "T stopped by a signal" },
	{ "t", "t stopped by a debugger" },
	{ "P", "P parked kernel thread" },
	{ "X", "X exiting" },
	{ "Z", "Z zombie, exiting" },
	{ "-", "waits too short for a stack of their own" },
	{ "?", "in an unknown state" },
};

static bool is_killable(const struct wire_row *row)
{
	return strcmp(row->state, "D") == 0 && row->state_bits & STATE_BIT_WAKEKILL;
}

const char *reason_text(const char *word)
{
	enum wait_reason reason = wait_reason_find(word);

	return reason < WAIT_REASON_N ? wait_reason_text(reason) : NULL;
}

/*
 * REASONS_SHOWN: the maximum number of a row's reasons in its line. REASON_LEAST: of those after
 * the first one, only what has one part in REASON_LEAST of the row's time is in it.
 */
enum { REASONS_SHOWN = 3, REASON_LEAST = 100 };

char *reasons_words(const struct wire_row *row, bool in_full)
{
	size_t size;
	char *text = NULL;
	FILE *out = must(open_memstream(&text, &size));

	for (size_t i = 0; i < row->reasons.n && (in_full || i < REASONS_SHOWN); i++) {
		const struct wire_reason_time *one = &row->reasons.v[i];
		_cleanup_(freep) char *word = name_escape(one->reason);

		if (!in_full && i && one->total_ns < row->total_ns / REASON_LEAST)
			break;
		fprintf(out, "%s%s %s", i ? ", " : "", word,
			in_full ? ns_text(one->total_ns)
				: share_text(one->total_ns, row->total_ns));
	}
	if (fclose(out) != 0)
		must(NULL);
	return text;
}

/*
 * Returns words that describe more than the state of a row: they also say what the thread waits
 * for, or whether a signal can end the wait, for example. Returns NULL if only the state is known.
 * The caller frees the words.
 */
static char *specific_words(const struct wire_row *row)
{
	const char *kind = reason_text(row->reason);
	char *words = NULL;
	int r;

	if (strcmp(row->state, "R") == 0 && (wait_reason_find(row->reason) == REASON_THROTTLED ||
					     row->throttled_ns > row->runnable_ns / 2))
		r = asprintf(&words, "R throttled: its cgroup's CPU quota is used up");
	else if (strcmp(row->state, "mixed") == 0)
		r = asprintf(&words, "mixed: %s%s blocked, %s%s ready", row_about(row),
			     ns_text(row->blocked_ns), row_about(row), ns_text(row->runnable_ns));
	else if (kind && strcmp(row->state, "S") == 0)
		r = asprintf(&words, "S waits for %s", kind);
	else if (kind && strcmp(row->state, "I") == 0)
		r = asprintf(&words, "I waits for %s", kind);
	else if (strcmp(row->state, "D") == 0 && (kind || is_killable(row)))
		r = asprintf(&words, "D waits%s%s, %s", kind ? " for " : "", kind ? kind : "",
			     is_killable(row) ? "killable (kill -9 ends it)" : "uninterruptible");
	else
		return NULL;
	return must(r < 0 ? NULL : words);
}

char *state_words(const struct wire_row *row)
{
	char *words = specific_words(row);

	if (words)
		return words;
	for (size_t i = 0; i < ARRAY_SIZE(state_table); i++)
		if (strcmp(state_table[i].state, row->state) == 0)
			return must(strdup(state_table[i].words));
	return name_escape(row->state);
}

const char *state_word(const struct wire_row *row)
{
	switch (row->state[0]) {
	case '-':
		return "rest, no stack";
	case 'S':
		return "S sleeping";
	case 'D':
		return "D uninterruptible";
	case 'R':
		return "R ready";
	case 'm':
		return "several states";
	default:
		return row->state;
	}
}

const char *process_fate(const struct wire_process *process)
{
	return process->exited ? "exited" : process->replaced == 1 ? "before exec" : NULL;
}

bool row_was_blocked(const struct wire_row *row)
{
	return row->state[0] != '\0' && row->state[1] == '\0' && strchr("SDITtPX", row->state[0]);
}

bool row_is_uninterruptible(const struct wire_row *row)
{
	return row->state[0] == 'D' && !is_killable(row);
}

bool row_is_in_doubt(const struct wire_row *row)
{
	return row->unseen != WIRE_ABSENT && row->unseen > 0 && row->unseen >= row->open;
}

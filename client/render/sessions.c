/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/base/term.h"
#include "client/render/coverage.h"
#include "client/render/status.h"
#include "common/base.h"

enum { LABEL_WIDTH = 10 };

static void put_ids(FILE *out, const char *what, const struct int_list *ids)
{
	for (size_t i = 0; i < ids->n; i++)
		fprintf(out, "%s%" PRId64, i ? "," : what, ids->v[i]);
}

/*
 * Prints a length of time in the largest unit that needs no fraction, so that the user can type it
 * as an option's value again.
 */
static void put_length(FILE *out, const char *what, int64_t ns)
{
	static const struct {
		int64_t ns;
		const char *name;
	} units[] = { { NS_PER_S, "s" }, { NS_PER_MS, "ms" }, { NS_PER_US, "us" }, { 1, "ns" } };
	size_t i = 0;

	if (ns == WIRE_ABSENT)
		return;
	while (ns % units[i].ns != 0)
		i++;
	fprintf(out, "%s%" PRId64 "%s", what, ns / units[i].ns, units[i].name);
}

static void put_word(FILE *out, const char *what, const char *word)
{
	if (word)
		fprintf(out, "%s%s", what, word);
}

/*
 * Returns the filter of a session as options of stackctl, such as " -p 42 --state D". The caller
 * frees it.
 */
static char *filter_text(const struct wire_filter *f)
{
	char *text = NULL;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));

	put_ids(out, " -p ", &f->pids);
	put_ids(out, " -t ", &f->tids);
	put_ids(out, " -C ", &f->cpus);
	put_word(out, " -u", f->user_threads == 1 ? "" : NULL);
	put_word(out, " -k", f->kernel_threads == 1 ? "" : NULL);
	put_word(out, " -U", f->user_stacks == 1 ? "" : NULL);
	put_word(out, " -K", f->kernel_stacks == 1 ? "" : NULL);
	put_length(out, " -m ", f->min_block_ns);
	put_length(out, " -M ", f->max_block_ns);
	for (size_t i = 0; i < f->states.n; i++)
		fprintf(out, "%s%s", i ? "," : " --state ", f->states.v[i]);
	put_word(out, " --comm ", f->comm);
	put_word(out, " --cgroup ", f->cgroup);
	put_word(out, " --unit ", f->unit);
	put_word(out, " --layer ", f->layer);
	put_word(out, " --op ", f->op);
	put_word(out, " --disk ", f->disk);
	if (fclose(out) != 0)
		free(TAKE(text));
	return must(text);
}

static void render_times(const struct page *page, const struct wire_session *s)
{
	char time[TERM_TIME_MAX];

	if (s->ended != WIRE_ABSENT) {
		time_format(s->ended, TIME_FULL, time);
		page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH, "ended %s", time);
	} else if (s->until != WIRE_ABSENT) {
		time_format(s->until, TIME_FULL, time);
		page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH, "ends %s", time);
	}
}

/*
 * Prints which functions a session traces, how many calls there were, and how much CPU that costs.
 */
static void render_traced(const struct page *page, const struct wire_session *s)
{
	_cleanup_(freep) char *function = name_escape(s->function ? s->function : "");
	const char *regexp = s->regexp == 1 ? "-r " : "";
	_cleanup_(freep) char *file = name_escape(s->file ? s->file : "");
	_cleanup_(freep) char *note = name_escape(s->note ? s->note : "");

	if (s->function && s->functions != WIRE_ABSENT && s->count != WIRE_ABSENT)
		page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH, "%s%s: %s function%s, %s call%s",
			  regexp, function, count_text(s->functions), s->functions == 1 ? "" : "s",
			  count_text(s->count), s->count == 1 ? "" : "s");
	else if (s->function)
		page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH, "%s%s", regexp, function);
	if (file[0])
		page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH, "in %s", file);
	if (s->calls_per_s != WIRE_ABSENT && s->load != WIRE_ABSENT)
		page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH,
			  "now %s a second, %" PRId64 " %% of a CPU", count_text(s->calls_per_s),
			  s->load);
	if (s->every != WIRE_ABSENT)
		page_wrap(page, STYLE_WARN, "", LABEL_WIDTH,
			  "one call in %s is recorded and stands for the others",
			  count_text(s->every));
	if (s->held != WIRE_ABSENT && s->held > 0)
		page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH,
			  "%s not printed, at %s a second at most", count_text(s->held),
			  count_text(s->rate));
	if (note[0])
		page_wrap(page, STYLE_WARN, "", LABEL_WIDTH, "%s", note);
}

static void render_session(const struct page *page, const struct wire_session *s)
{
	_cleanup_(freep) char *id = name_escape(s->id), *probe = name_escape(s->probe);
	_cleanup_(freep) char *owner = name_escape(s->owner);
	_cleanup_(freep) char *name = name_escape(s->name ? s->name : "");
	char since[TERM_TIME_MAX];

	time_format(s->since, TIME_FULL, since);
	page_wrap(page, s->ended == WIRE_ABSENT ? STYLE_PLAIN : STYLE_DIM, id, LABEL_WIDTH,
		  "%s%s%s, of %s, since %s%s", probe, name[0] ? ", " : "", name, owner, since,
		  s->always ? ", always on" : "");
	if (s->filter) {
		_cleanup_(freep) char *raw = filter_text(s->filter), *filter = name_escape(raw);

		if (filter[0])
			page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH, "only%s", filter);
	}
	render_traced(page, s);
	render_times(page, s);
	if (lost_count(&s->lost) > 0)
		render_lost(page, &s->lost, LABEL_WIDTH);
}

void render_sessions(const struct page *page, const struct wire_sessions_reply *reply)
{
	for (size_t i = 0; i < reply->sessions.n; i++)
		render_session(page, &reply->sessions.v[i]);
	if (reply->sessions.n == 0)
		page_wrap(page, STYLE_PLAIN, "", 0, "no sessions");
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/top/picture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/base/term.h"
#include "client/render/formats.h"
#include "common/base.h"

/* Writes the name of the file: "stackd-on-cpu-20260309T140000Z.svg". */
static void name_make(const struct top_question *question, char *out, size_t size)
{
	static const char *const tabs[TABS] = { "overview", "blocked", "on-cpu",
						"overview", "io",      "stuck" };
	time_t seconds = (time_t)(question->span.since_ns / NS_PER_S);
	char when[32];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(out, size, "stackd-%s-%s.svg", tabs[question->state.tab], when);
}

/* Adds the rows of an answer to the picture. */
static void add(void *stream, const struct collection *c)
{
	struct wire_snapshot_reply reply = c->reply;

	if (!c->has_reply)
		return;
	reply.rows = (struct wire_rows){ c->rows, c->n };
	format_svg.stream_add(stream, &reply, true);
}

static void draw(const struct top_answer *answer, FILE *out)
{
	const struct view view = { .page = { .out = out }, .is_short = true };
	const enum tab tab = answer->question.state.tab;
	bool is_overview = tab == TAB_OVERVIEW || tab == TAB_RUNNABLE;
	void *stream = format_svg.stream_new(&view, is_overview ? STREAM_OVERVIEW : STREAM_ANSWER);

	add(stream, &answer->waits);
	add(stream, &answer->samples);
	add(stream, &answer->io);
	format_svg.stream_end(stream, true);
}

/* Creates the file and draws. Returns 0 or a negative errno; then there is no file. */
static int write_file(const struct top_answer *answer, const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	bool failed;
	FILE *out;
	int r = 0;

	if (fd < 0)
		return -errno;
	out = fdopen(fd, "w");
	if (!out) {
		r = -errno;
		close(fd);
		unlink(name);
		return r;
	}
	errno = 0;
	draw(answer, out);
	failed = ferror(out);
	if (failed)
		r = errno ? -errno : -EIO;
	if (fclose(out) != 0 && !failed)
		r = -errno;
	if (r < 0)
		unlink(name);
	return r;
}

void picture_write(const struct top_answer *answer, char *message, size_t size)
{
	char name[64];
	int r;

	if (answer->message) {
		_cleanup_(freep) char *why = name_escape(answer->message);

		snprintf(message, size, "no picture: %s", why);
		return;
	}
	name_make(&answer->question, name, sizeof(name));
	r = write_file(answer, name);
	if (r == -EEXIST)
		snprintf(message, size, "%s was written before", name);
	else if (r < 0)
		snprintf(message, size, "%s: %s", name, strerror(-r));
	else
		snprintf(message, size, "wrote %s", name);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_FORMATS_H
#define STACKD_CLIENT_RENDER_FORMATS_H

/*
 * The output formats. A format is one file here that defines a `const struct format format_NAME`,
 * and its NAME in the list of formats in meson.build: from this list come the table, the words that
 * --format takes, its help and its completion. Constant.
 */

#include <stdbool.h>
#include <stdint.h>

#include "client/render/format_list.h"
#include "client/render/page.h"
#include "client/render/render.h"
#include "proto/wire.h"

struct format {
	const char *name;   /* what --format takes */
	const char *suffix; /* ends the names of files that --output DIR/ makes; without the dot */
	bool is_for_people; /* shows the largest rows only, and hints; else it is for programs */
	bool has_all_rows;  /* its lines add up to the whole time, so that --top is refused */
	bool has_only_stacks; /* call() and the functions below it are NULL */

	/*
	 * Each prints one kind of answer on a page. Borrows the answer; write errors stay in the
	 * stream. stuck() may be NULL: snapshot() prints its answers then.
	 */
	void (*snapshot)(const struct view *view, const struct wire_snapshot_reply *reply);
	void (*stuck)(const struct view *view, const struct wire_snapshot_reply *reply);
	/* samples may be NULL, for the reason `why`, which may be NULL, too. */
	void (*overview)(const struct view *view, const struct wire_snapshot_reply *waits,
			 const struct wire_snapshot_reply *samples, const char *why);
	void (*call)(const struct view *view, const struct wire_call *call);
	void (*status)(const struct page *page, const struct wire_status_reply *reply, int64_t now);
	void (*probes)(const struct page *page, const struct wire_probes_reply *reply);
	void (*functions)(const struct page *page, const struct wire_functions_reply *reply);
	void (*sessions)(const struct page *page, const struct wire_sessions_reply *reply);
	void (*windows)(const struct page *page, const struct wire_windows_reply *reply);
};

#define FORMAT(name) extern const struct format format_##name;
FORMAT_LIST
#undef FORMAT

/* Returns the format with that name, or NULL. */
const struct format *format_find(const char *name);

#endif

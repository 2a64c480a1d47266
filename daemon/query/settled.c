/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>

#include "common/base.h"
#include "daemon/query/answer.h"
#include "daemon/session/recorder.h"

/* How long one session may take to handle what its BPF programs have reported. */
#define CATCH_UP_NS NS_PER_S

/* Lines of the answer, in memory for LINES_MAX of them. */
enum { LINES_MAX = 4 };

struct lines {
	const char **v;
	size_t n;
};

static int lines_init(struct lines *lines, struct arena *arena)
{
	*lines = (struct lines){ .v = arena_array(arena, LINES_MAX, sizeof(*lines->v)) };
	return lines->v ? 0 : -ENOMEM;
}

static void line_add(struct lines *lines, bool is_so, const char *text)
{
	if (is_so)
		lines->v[lines->n++] = text;
}

/* Adds "N files" and what is the matter with them, if n is not 0. Returns 0 or -ENOMEM. */
static int files_add(struct arena *arena, struct lines *lines, size_t n, const char *one,
		     const char *many)
{
	if (!n)
		return 0;
	lines->v[lines->n] = arena_printf(arena, "%zu %s", n, n == 1 ? one : many);
	return lines->v[lines->n++] ? 0 : -ENOMEM;
}

/* Sets what is still to come. Returns 0 or -ENOMEM. */
static int awaited_make(const struct process_settled *known, bool is_late, struct answer *answer)
{
	struct lines lines;
	int r = lines_init(&lines, answer->arena);

	if (r)
		return r;
	line_add(&lines, is_late, "what the kernel has reported waits to be read");
	line_add(&lines, known->is_hanging, "reading its mappings hangs");
	line_add(&lines, !known->is_read && !known->is_kernel && !known->is_hanging,
		 "its mappings wait to be read");
	line_add(&lines, known->is_read && !known->is_shown && !known->is_full,
		 "its mappings wait to be passed to the walks of stacks");
	r = files_add(answer->arena, &lines, known->files.awaited, "file waits to be read",
		      "files wait to be read");
	answer->reply.settled.awaited = (struct wire_strs){ lines.v, lines.n };
	return r;
}

/* Sets what will not come. Returns 0 or -ENOMEM. */
static int lacks_make(const struct process_settled *known, bool has_walks, struct answer *answer)
{
	struct arena *arena = answer->arena;
	struct lines lines;
	int r = lines_init(&lines, arena);

	if (r)
		return r;
	line_add(&lines, !has_walks, "the user stacks of this host are not walked");
	line_add(&lines, has_walks && known->is_full,
		 "its mappings have no room, see [unwind] max_memory");
	if (has_walks) {
		r = files_add(arena, &lines, known->files.rowless, "file has no unwind rows",
			      "files have no unwind rows");
		if (r)
			return r;
	}
	r = files_add(arena, &lines, known->files.partial,
		      "file has room for only some of its unwind rows",
		      "files have room for only some of their unwind rows");
	if (r)
		return r;
	r = files_add(arena, &lines, known->files.refused,
		      "file could not be read, or its unwind rows have no room",
		      "files could not be read, or their unwind rows have no room");
	answer->reply.settled.lacks = (struct wire_strs){ lines.v, lines.n };
	return r;
}

static int answer_make(const struct recorder *recorder, const struct process_settled *known,
		       bool is_late, struct answer *answer)
{
	struct wire_settled_reply *reply = &answer->reply.settled;
	int r = awaited_make(known, is_late, answer);

	if (r)
		return r;
	r = lacks_make(known, recorder->unwind != NULL, answer);
	if (r)
		return r;
	reply->settled = known->is_settled && !is_late;
	reply->files = (int64_t)known->files.n;
	reply->comm = arena_strdup(answer->arena, known->comm);
	return reply->comm ? 0 : -ENOMEM;
}

int query_settled(struct recorder *recorder, const struct query_peer *peer, const void *params,
		  struct answer **out, struct wire_error *error)
{
	const struct wire_settled_request *request = params;
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	struct process_settled known;
	bool is_late;
	int r;

	if (!answer)
		return -ENOMEM;
	if (recorder->is_serve_only)
		return wire_error_set(error, -ENOTSUP, ERROR_NOT_SUPPORTED, "Settled", "%s",
				      recorder_serves_only);
	r = session_check_task(request->pid, true, "pid", error);
	if (r)
		return r;
	/* What is not handled yet may say that the process has replaced its program. */
	is_late = sessions_catch_up(recorder->sessions, CATCH_UP_NS);
	r = process_table_settle(recorder->processes, (int32_t)request->pid, &known);
	if (r == -ESRCH)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "pid",
				      "process %" PRId64 " is exiting", request->pid);
	if (r)
		return r;
	r = answer_make(recorder, &known, is_late, answer);
	if (r)
		return r;
	*out = TAKE(answer);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/absent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/query/aggregate_internal.h"

/*
 * A filter may have thousands of ids: only the first CHECKED_MAX are looked up, which is as many as
 * are looked for among folded processes, and at most NAMED_MAX are named.
 */
enum { CHECKED_MAX = AGGREGATE_MEMBERS_MAX, NAMED_MAX = 8 };

enum { PID_MAX = 4194304 }; /* PID_MAX_LIMIT of 64-bit kernels: no pid is greater than this */

static bool saw_process(const struct aggregate *aggregate, int64_t pid)
{
	const struct aggregate_seen *seen = aggregate_seen_find(aggregate, pid);

	return seen && seen->is_process;
}

/* Returns the entry of a thread with this id that was seen; NULL if no such thread was seen. */
static const struct aggregate_seen *find_thread(const struct aggregate *aggregate, int64_t tid)
{
	const struct aggregate_seen *seen = aggregate_seen_find(aggregate, tid);

	return seen && seen->is_thread ? seen : NULL;
}

/*
 * True if a process with this pid exists now. False for the tid of a thread other than the first of
 * its process.
 */
static bool process_exists(int64_t pid)
{
	return pid > 0 && pid <= PID_MAX &&
	       (syscall(SYS_tgkill, (pid_t)pid, (pid_t)pid, 0) == 0 || errno == EPERM);
}

/* True if the process has ended, and its parent has not waited for it yet (a zombie). */
static bool process_is_zombie(int64_t pid)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64], line[256];
	const char *end;

	snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
	f = fopen(path, "re");
	if (!f || !fgets(line, sizeof(line), f))
		return false;
	/* The name before the state may have any character. */
	end = strrchr(line, ')');
	return end && strncmp(end, ") Z", 3) == 0;
}

/* Writes that the thread may be one of a folded process: a window has no threads of these. */
static void describe_doubt(FILE *out, const struct aggregate *aggregate)
{
	const struct window_folded *folded = aggregate_folded(aggregate);

	if (folded->rows)
		fprintf(out,
			", but %" PRIu64 " processes were folded, whose threads are not listed",
			folded->processes > folded->started ? folded->processes : folded->started);
}

/*
 * Writes that a process was not seen, or that it may be among those that were folded, as one that
 * exists now may be, too. `exists` is true for that.
 */
static void describe_nobody(FILE *out, const struct aggregate *aggregate, int64_t pid,
			    enum probe_kind kind, bool exists)
{
	const struct window_folded *folded = aggregate_folded(aggregate);

	if (folded->unlisted)
		fprintf(out,
			"process %" PRId64 "%s may be one of %" PRIu64
			" folded processes whose pids are not kept",
			pid, exists ? " exists, and" : "", folded->unlisted);
	else if (exists)
		fprintf(out, "process %" PRId64 " exists, but %s", pid, probe_kind_absent(kind));
	else
		fprintf(out, "no process %" PRId64 " was seen in the range", pid);
}

/*
 * Describes a pid that no window has. The user may have given the tid of a thread by mistake,
 * because `top -H` prints tids.
 */
static void describe_pid(FILE *out, const struct aggregate *aggregate, int64_t pid,
			 enum probe_kind kind, bool is_live)
{
	const struct aggregate_seen *thread = find_thread(aggregate, pid);

	if (!thread && is_live && process_is_zombie(pid))
		fprintf(out,
			"process %" PRId64
			" has ended, and its parent has not waited for it (a zombie)",
			pid);
	else if (!thread)
		describe_nobody(out, aggregate, pid, kind, is_live && process_exists(pid));
	else
		fprintf(out, "%" PRId64 " is a thread of %.16s (pid %d): use -t %" PRId64, pid,
			thread->comm, thread->pid, pid);
}

/*
 * Returns the first member of aggregate->members with this pid, which says that the process is in a
 * folded entry (one that stands for several processes); NULL if there is none.
 */
static const struct aggregate_member *find_member(const struct aggregate *aggregate, int64_t pid)
{
	size_t i;

	for (i = 0; i < aggregate->n_members; i++)
		if (aggregate->members[i].pid == pid)
			return &aggregate->members[i];
	return NULL;
}

/*
 * Writes that the process with this pid was folded: the rows of the answer stand for other
 * processes, too.
 */
static void describe_folded(FILE *out, const struct aggregate *aggregate, int64_t pid)
{
	const struct aggregate_member *member = find_member(aggregate, pid), *end;
	const char *between = "";

	end = aggregate->members + aggregate->n_members;
	fprintf(out, "process %" PRId64 " was folded: rows and totals are the sums of ", pid);
	for (; member < end; member++) {
		if (member->pid != pid)
			continue;
		fprintf(out, "%s%" PRIu32 " processes named %.16s", between,
			window_processes(member->folded->processes, member->folded->started),
			member->folded->comm);
		between = " and ";
	}
	fputs(", of which it is one", out);
}

/* Writes that the answer lacks rows of the process, because they were folded. */
static void describe_partly(FILE *out, const struct aggregate_seen *seen)
{
	fprintf(out,
		"in %" PRIu32 " window%s some rows of process %" PRIu64
		" were folded with those of others, and are not in this answer",
		seen->partly_folded, seen->partly_folded == 1 ? "" : "s", seen->id);
}

/*
 * Writes a phrase for each pid or tid of the filter that no window has, and for each process of
 * which rows were folded. Returns how many of them there are.
 */
static size_t describe_absent(FILE *out, const struct aggregate *aggregate,
			      const struct wire_filter *filter, enum probe_kind kind, bool is_live)
{
	size_t i, n = 0;

	for (i = 0; i < filter->pids.n && i < CHECKED_MAX; i++) {
		bool is_folded = find_member(aggregate, filter->pids.v[i]) != NULL;
		bool was_seen = saw_process(aggregate, filter->pids.v[i]);
		const struct aggregate_seen *seen =
			aggregate_seen_find(aggregate, filter->pids.v[i]);
		bool is_partly = was_seen && seen->partly_folded;

		if ((!is_folded && !is_partly && was_seen) || n++ >= NAMED_MAX)
			continue;
		fputs(n > 1 ? "; " : "", out);
		if (is_folded)
			describe_folded(out, aggregate, filter->pids.v[i]);
		if (is_partly)
			fputs(is_folded ? "; " : "", out);
		if (is_partly)
			describe_partly(out, seen);
		else if (!is_folded)
			describe_pid(out, aggregate, filter->pids.v[i], kind, is_live);
	}
	for (i = 0; i < filter->tids.n && i < CHECKED_MAX; i++) {
		if (find_thread(aggregate, filter->tids.v[i]) || n++ >= NAMED_MAX)
			continue;
		fprintf(out, "%sno thread %" PRId64 " was seen in the range", n > 1 ? "; " : "",
			filter->tids.v[i]);
		describe_doubt(out, aggregate);
	}
	if (n > NAMED_MAX)
		fprintf(out, "; and %zu more were not seen, or were folded", n - NAMED_MAX);
	return n;
}

int absent_note(struct arena *arena, const struct aggregate *aggregate,
		const struct wire_filter *filter, enum probe_kind kind, bool is_live,
		const char **out)
{
	_cleanup_(freep) char *text = NULL;
	size_t size, n;
	FILE *stream;

	*out = NULL;
	if (!filter || (!filter->pids.n && !filter->tids.n))
		return 0;
	stream = open_memstream(&text, &size);
	if (!stream)
		return -ENOMEM;
	n = describe_absent(stream, aggregate, filter, kind, is_live);
	if (fclose(stream))
		return -ENOMEM;
	if (n == 0)
		return 0;
	*out = arena_strdup(arena, text);
	return *out ? 0 : -ENOMEM;
}

/* Writes `prefix` and then `text`; writes nothing if `text` is NULL. */
static void describe_text(FILE *out, const char *prefix, const char *text)
{
	if (text)
		fprintf(out, "%s%.100s", prefix, text);
}

/* Writes that no thread matches the whole filter, although each of its ids was seen. */
static void describe_filter(FILE *out, const struct wire_filter *filter)
{
	fputs("no thread", out);
	if (filter->pids.n || filter->tids.n)
		fputs(" of these ids", out);
	describe_text(out, " of comm ", filter->comm);
	describe_text(out, " in cgroup ", filter->cgroup);
	describe_text(out, " of unit ", filter->unit);
	fputs(" was seen in the range", out);
}

int absent_error(const struct aggregate *aggregate, const struct wire_filter *filter,
		 enum probe_kind kind, bool is_live, struct wire_error *error)
{
	_cleanup_(freep) char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	if (describe_absent(out, aggregate, filter, kind, is_live) == 0)
		describe_filter(out, filter);
	if (fclose(out))
		return -ENOMEM;
	return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "filter", "%.900s", text);
}

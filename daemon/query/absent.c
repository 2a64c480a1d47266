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
#include "common/duration.h"
#include "common/note_words.h"
#include "daemon/query/aggregate_internal.h"

/*
 * A filter may have thousands of ids: only the first CHECKED_MAX are looked up, which is as many as
 * are looked for among folded processes, and at most NAMED_MAX are named.
 */
enum { CHECKED_MAX = AGGREGATE_MEMBERS_MAX, NAMED_MAX = 8 };

enum { PID_MAX = 4194304 }; /* PID_MAX_LIMIT of 64-bit kernels: no pid is greater than this */

/* A text that is being written, and what it is about. */
struct absent_text {
	FILE *out;
	const struct aggregate *aggregate;
	const struct absent_range *range;
	const struct wire_filter *filter;
	bool is_denied; /* of a process or thread in the text, nothing was recorded */
};

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

/*
 * Returns for how long the detail was left out that a process may have been seen by, to keep within
 * the budget, which holds only sessions that are always on.
 */
static int64_t shed_ns(const struct absent_text *text)
{
	const struct window_cost *cost = aggregate_cost(text->aggregate);
	const enum probe_kind kind = text->range->kind;

	if (!text->range->is_always)
		return 0;
	/* Where only requests to disks are recorded, no call was left out for the budget. */
	if (probe_kind_has(kind, PROBE_IO))
		return above_is_disks(text->range->above)
			       ? 0
			       : (int64_t)cost->shed_ns[WINDOW_SHED_CALLS];
	return probe_kind_has(kind, PROBE_SAMPLES) ? (int64_t)cost->shed_ns[WINDOW_SHED_SAMPLES]
						   : 0;
}

/* True if all that the probe is for was recorded in all of the range, as far as stackd knows. */
static bool is_complete(const struct absent_text *text)
{
	const struct absent_range *range = text->range;

	return !shed_ns(text) && !range->above && !range->all_from_ns && !range->gaps_ns &&
	       !range->lost && !range->shared && !range->is_late;
}

/* Writes what is between two parts of a list, and then what begins the next one. */
static void list_next(FILE *out, const char **between)
{
	fputs(*between, out);
	*between = ", ";
}

/* Writes what was not recorded although the probe is for it: lost, in gaps, or in other rows. */
static void describe_gone(const struct absent_text *text, const char **between)
{
	const struct absent_range *range = text->range;
	char length[DURATION_TEXT_MAX];

	if (range->is_late) {
		list_next(text->out, between);
		fputs("the newest data", text->out);
		duration_format(range->late_ns, length);
		if (range->late_ns)
			fprintf(text->out, ", that of the last %s,", length);
		fputs(" as stackd is too busy to end its open window", text->out);
	}
	if (range->gaps_ns) {
		duration_format(range->gaps_ns, length);
		list_next(text->out, between);
		fprintf(text->out, "%s of the range (gaps)", length);
	}
	if (range->lost) {
		list_next(text->out, between);
		fprintf(text->out, "%" PRIu64 " lost events", range->lost);
	}
	if (range->shared) {
		list_next(text->out, between);
		fprintf(text->out,
			"the processes of %" PRIu64 " operations ([probe.iolat] max_keys)",
			range->shared);
	}
}

/* True if the word means the same to a shell as it does here. */
static bool is_plain(const char *word)
{
	return word[0] != '-' && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					      "0123456789-_.:/+@") == strlen(word);
}

/* Writes the command that records all of it for a while: sessions of clients have no budget. */
static void describe_command(const struct absent_text *text)
{
	const struct wire_filter *filter = text->filter;

	fprintf(text->out, "; all is recorded by: stackctl record %s",
		probe_kind_name(text->range->kind));
	if (filter->pids.n)
		fprintf(text->out, " -p %" PRId64, filter->pids.v[0]);
	else if (filter->tids.n)
		fprintf(text->out, " -t %" PRId64, filter->tids.v[0]);
	else if (filter->comm && is_plain(filter->comm))
		fprintf(text->out, " --comm %s", filter->comm);
}

/*
 * Writes what was not recorded in the range, and why, so that nobody takes a process that was not
 * recorded for one that did nothing.
 */
static void describe_unrecorded(const struct absent_text *text)
{
	const struct absent_range *range = text->range;
	const int64_t shed = shed_ns(text);
	const char *between = "; not recorded: ";
	char length[DURATION_TEXT_MAX];

	if (shed) {
		duration_format(shed, length);
		list_next(text->out, &between);
		fprintf(text->out, "%s for %s (more than [budget] cpu allows)",
			probe_kind_has(range->kind, PROBE_IO) ? "I/O other than requests to disks"
							      : "most samples",
			length);
	}
	if (range->above) {
		list_next(text->out, &between);
		fputs(range->above, text->out);
	}
	if (range->all_from_ns) {
		duration_format(range->all_from_ns, length);
		list_next(text->out, &between);
		fprintf(text->out, "some waits under %s", length);
	}
	describe_gone(text, &between);
	if (shed || range->above)
		describe_command(text);
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
static void describe_nobody(struct absent_text *text, int64_t pid, bool exists)
{
	const struct window_folded *folded = aggregate_folded(text->aggregate);
	const enum probe_kind kind = text->range->kind;

	text->is_denied |= !folded->unlisted;
	if (folded->unlisted)
		fprintf(text->out,
			"process %" PRId64 "%s may be one of %" PRIu64
			" folded processes whose pids are not kept",
			pid, exists ? " exists, and" : "", folded->unlisted);
	else if (exists)
		fprintf(text->out, "process %" PRId64 " exists, but %s", pid,
			is_complete(text) ? probe_kind_absent(kind) : probe_kind_unrecorded(kind));
	else
		fprintf(text->out, "no process %" PRId64 " was seen in the range", pid);
}

/*
 * Describes a pid that no window has. The user may have given the tid of a thread by mistake,
 * because `top -H` prints tids.
 */
static void describe_pid(struct absent_text *text, int64_t pid)
{
	const struct aggregate_seen *thread = find_thread(text->aggregate, pid);
	const bool is_live = text->range->is_live;

	if (!thread && is_live && process_is_zombie(pid))
		fprintf(text->out,
			"process %" PRId64
			" has ended, and its parent has not waited for it (a zombie)",
			pid);
	else if (!thread)
		describe_nobody(text, pid, is_live && process_exists(pid));
	else
		fprintf(text->out, "%" PRId64 " is a thread of %.16s (pid %d): use -t %" PRId64,
			pid, thread->comm, thread->pid, pid);
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
 * Writes a phrase for each pid of the filter that no window has, and for each process of which rows
 * were folded. Adds their number to *n.
 */
static void describe_pids(struct absent_text *text, size_t *n)
{
	const struct aggregate *aggregate = text->aggregate;
	const struct int_list *pids = &text->filter->pids;
	size_t i;

	for (i = 0; i < pids->n && i < CHECKED_MAX; i++) {
		bool is_folded = find_member(aggregate, pids->v[i]) != NULL;
		bool was_seen = saw_process(aggregate, pids->v[i]);
		const struct aggregate_seen *seen = aggregate_seen_find(aggregate, pids->v[i]);
		bool is_partly = was_seen && seen->partly_folded;

		if ((!is_folded && !is_partly && was_seen) || (*n)++ >= NAMED_MAX)
			continue;
		fputs(*n > 1 ? "; " : "", text->out);
		if (is_folded)
			describe_folded(text->out, aggregate, pids->v[i]);
		if (is_partly)
			fputs(is_folded ? "; " : "", text->out);
		if (is_partly)
			describe_partly(text->out, seen);
		else if (!is_folded)
			describe_pid(text, pids->v[i]);
	}
}

/*
 * Writes a phrase for each pid or tid of the filter that no window has, and for each process of
 * which rows were folded. Returns how many of them there are.
 */
static size_t describe_absent(struct absent_text *text)
{
	const struct int_list *tids = &text->filter->tids;
	size_t i, n = 0;

	describe_pids(text, &n);
	for (i = 0; i < tids->n && i < CHECKED_MAX; i++) {
		if (find_thread(text->aggregate, tids->v[i]) || n++ >= NAMED_MAX)
			continue;
		fprintf(text->out, "%sno thread %" PRId64 " was seen in the range",
			n > 1 ? "; " : "", tids->v[i]);
		describe_doubt(text->out, text->aggregate);
		text->is_denied = true;
	}
	if (n > NAMED_MAX)
		fprintf(text->out, "; and %zu more were not seen, or were folded", n - NAMED_MAX);
	return n;
}

int absent_note(struct arena *arena, const struct aggregate *aggregate,
		const struct wire_filter *filter, const struct absent_range *range,
		const char **out)
{
	struct absent_text text = { .aggregate = aggregate, .range = range, .filter = filter };
	_cleanup_(freep) char *note = NULL;
	size_t size, n;

	*out = NULL;
	if (!filter || (!filter->pids.n && !filter->tids.n))
		return 0;
	text.out = open_memstream(&note, &size);
	if (!text.out)
		return -ENOMEM;
	n = describe_absent(&text);
	if (text.is_denied)
		describe_unrecorded(&text);
	if (fclose(text.out))
		return -ENOMEM;
	if (n == 0)
		return 0;
	*out = arena_strdup(arena, note);
	return *out ? 0 : -ENOMEM;
}

/* Writes `prefix` and then `text`; writes nothing if `text` is NULL. */
static void describe_text(FILE *out, const char *prefix, const char *text)
{
	if (text)
		fprintf(out, "%s%.100s", prefix, text);
}

/* Writes that no thread matches the whole filter, although each of its ids was seen. */
static void describe_filter(struct absent_text *text)
{
	const struct wire_filter *filter = text->filter;

	fputs("no thread", text->out);
	if (filter->pids.n || filter->tids.n)
		fputs(" of these ids", text->out);
	describe_text(text->out, " of comm ", filter->comm);
	describe_text(text->out, " in cgroup ", filter->cgroup);
	describe_text(text->out, " of unit ", filter->unit);
	fputs(" was seen in the range", text->out);
	text->is_denied = true;
}

int absent_error(const struct aggregate *aggregate, const struct wire_filter *filter,
		 const struct absent_range *range, struct wire_error *error)
{
	struct absent_text text = { .aggregate = aggregate, .range = range, .filter = filter };
	_cleanup_(freep) char *message = NULL;
	size_t size;

	text.out = open_memstream(&message, &size);
	if (!text.out)
		return -ENOMEM;
	if (describe_absent(&text) == 0)
		describe_filter(&text);
	if (text.is_denied)
		describe_unrecorded(&text);
	if (fclose(text.out))
		return -ENOMEM;
	return wire_error_set(error, -ENODATA, ERROR_NO_DATA, "filter", "%.900s", message);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/group_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"

/* A row of the answer, and the name by which it is grouped. */
struct keyed_row {
	const struct wire_row *row;
	const char *key;
};

enum group_by group_by_parse(const char *text)
{
	static const char *const words[] = {
		[GROUP_BY_COMM] = "comm",
		[GROUP_BY_CGROUP] = "cgroup",
		[GROUP_BY_MODULE] = "module",
		[GROUP_BY_FUNCTION] = "function",
	};
	size_t i;

	for (i = GROUP_BY_COMM; text && i < ARRAY_SIZE(words); i++)
		if (strcmp(text, words[i]) == 0)
			return (enum group_by)i;
	return GROUP_BY_NONE;
}

/*
 * True for a function of the scheduler. Every wait in the kernel has these functions innermost, so
 * grouping by them would say nothing.
 */
static bool frame_is_scheduler(const struct wire_frame *frame)
{
	static const char *const names[] = { "__schedule", "schedule", "io_schedule",
					     "preempt_schedule" };
	size_t i;

	for (i = 0; frame->name && i < ARRAY_SIZE(names); i++)
		if (strncmp(frame->name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static const struct wire_frame *stack_leaf(const struct wire_stack *stack, bool has_waits)
{
	size_t i = 0;

	if (!stack || !stack->frames.n)
		return NULL;
	while (has_waits && i + 1 < stack->frames.n && frame_is_scheduler(&stack->frames.v[i]))
		i++;
	return &stack->frames.v[i];
}

/*
 * Returns the frame by which a row is grouped. For a sample, this is the innermost frame of the
 * kernel stack, or of the user stack if there is no kernel stack. For a wait, it is the innermost
 * user frame if that is known, because in the kernel all programs wait in the same few functions.
 */
static const struct wire_frame *row_leaf(const struct wire_row *row)
{
	bool has_waits = row->state != NULL;
	const struct wire_frame *kernel = stack_leaf(row->kernel, has_waits);
	const struct wire_frame *user = stack_leaf(row->user, false);

	if (has_waits)
		return user && strcmp(user->kind, "pseudo") != 0 ? user : kernel ? kernel : user;
	return kernel ? kernel : user;
}

static const char *row_key(const struct wire_row *row, enum group_by by)
{
	const struct wire_frame *leaf;
	const char *key;

	if (by == GROUP_BY_COMM)
		return row->comm;
	if (by == GROUP_BY_CGROUP)
		return row->process.cgroup ? row->process.cgroup : "[unknown]";
	leaf = row_leaf(row);
	if (!leaf)
		return "[no stack]";
	/*
	 * The name of a pseudo frame says why there is no real frame. A frame of the kernel that is
	 * in no module is grouped under "[kernel]".
	 */
	if (by == GROUP_BY_FUNCTION || strcmp(leaf->kind, "pseudo") == 0)
		key = leaf->name;
	else if (leaf->module)
		key = leaf->module;
	else
		key = strcmp(leaf->kind, "kernel") == 0 ? "[kernel]" : NULL;
	if (!key && leaf->module)
		key = leaf->module;
	return key ? key : "[unknown]";
}

static bool row_is_short(const struct wire_row *row)
{
	return row->state && strcmp(row->state, "-") == 0;
}

static int compare_groups(const struct keyed_row *x, const struct keyed_row *y)
{
	int r = strcmp(x->key, y->key);

	if (!r)
		r = (int)x->row->idle - (int)y->row->idle;
	return r ? r : (int)row_is_short(x->row) - (int)row_is_short(y->row);
}

static int compare_keyed(const void *a, const void *b)
{
	const struct keyed_row *x = a, *y = b;
	int r = compare_groups(x, y);

	return r ? r : (x->row > y->row) - (x->row < y->row);
}

/* Adds value to *sum. Each of them may be WIRE_ABSENT. */
static void add_optional(int64_t *sum, int64_t value)
{
	if (value != WIRE_ABSENT)
		*sum = *sum == WIRE_ABSENT ? value : *sum + value;
}

static int buckets_add(struct arena *arena, struct wire_row *sum, const struct wire_row *row)
{
	size_t n = sum->buckets.n > row->buckets.n ? sum->buckets.n : row->buckets.n;
	int64_t *v;
	size_t i;

	if (!row->buckets.n)
		return 0;
	v = arena_array(arena, n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		v[i] = (i < sum->buckets.n ? sum->buckets.v[i] : 0) +
		       (i < row->buckets.n ? row->buckets.v[i] : 0);
	sum->buckets = (struct int_list){ .v = v, .n = n };
	return 0;
}

static void max_add(struct wire_row *sum, const struct wire_row *row)
{
	if (row->max_ns == WIRE_ABSENT || row->max_ns <= sum->max_ns)
		return;
	sum->max_ns = row->max_ns;
	sum->max_end = row->max_end;
	sum->max_tid = row->max_tid;
	sum->max_comm = row->max_comm;
}

static int row_add(struct arena *arena, struct wire_row *sum, const struct wire_row *row)
{
	sum->count += row->count;
	sum->total_ns += row->total_ns;
	add_optional(&sum->blocked_ns, row->blocked_ns);
	add_optional(&sum->runnable_ns, row->runnable_ns);
	add_optional(&sum->throttled_ns, row->throttled_ns);
	add_optional(&sum->open, row->open);
	add_optional(&sum->open_ns, row->open_ns);
	add_optional(&sum->unseen, row->unseen);
	if (sum->state_bits != WIRE_ABSENT && row->state_bits != WIRE_ABSENT)
		sum->state_bits |= row->state_bits;
	if (sum->state && row->state && strcmp(sum->state, row->state) != 0)
		sum->state = "mixed";
	max_add(sum, row);
	return buckets_add(arena, sum, row);
}

/*
 * Returns the row of a new group, made from its first row without the fields that differ between
 * the rows of a group.
 */
static struct wire_row row_begin(const struct keyed_row *keyed)
{
	struct wire_row row = *keyed->row;

	row.key = keyed->key;
	row.tid = WIRE_ABSENT;
	row.kernel = row.user = NULL;
	row.waker = NULL;
	return row;
}

int group_rows(struct arena *arena, enum group_by by, const struct wire_rows *rows,
	       struct wire_rows *out)
{
	struct keyed_row *keyed = arena_array(arena, rows->n + 1, sizeof(*keyed));
	struct wire_row *grouped = arena_array(arena, rows->n + 1, sizeof(*grouped));
	size_t i, n = 0;
	int r = 0;

	if (!keyed || !grouped)
		return -ENOMEM;
	for (i = 0; i < rows->n; i++)
		keyed[i] = (struct keyed_row){ &rows->v[i], row_key(&rows->v[i], by) };
	qsort(keyed, rows->n, sizeof(*keyed), compare_keyed);
	for (i = 0; i < rows->n && !r; i++) {
		if (i && compare_groups(&keyed[i - 1], &keyed[i]) == 0)
			r = row_add(arena, &grouped[n - 1], keyed[i].row);
		else
			grouped[n++] = row_begin(&keyed[i]);
	}
	if (!r)
		*out = (struct wire_rows){ .v = grouped, .n = n };
	return r;
}

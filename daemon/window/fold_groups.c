/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/shared.h"
#include "common/array.h"
#include "common/base.h"
#include "daemon/window/fold_internal.h"

/*
 * The values that all items of a summed row have in common. Keys are compared as bytes, so their
 * order has no meaning.
 */
struct fold_key {
	/* fold_image.hash or, in rows without stacks, the result of fold_image_rest() */
	uint64_t image;
	uint64_t state;
	uint64_t kernel;
	uint64_t user;
	uint64_t waker;
	uint64_t extra;
	uint64_t own; /* fold_image.own; the last member, see group_key_compare() */
};

/*
 * Items whose keys are equal except for `own`, which may become one summed row, or several if
 * processes keep their sums. So the choice of groups does not depend on which processes do.
 */
struct fold_group {
	struct fold_key key;
	uint64_t ns;
	uint32_t image; /* index in fold.images of the entry of its first item */
	size_t first;	/* index of its first item in the sorted list */
	size_t n;
	/*
	 * There are too many groups, and this one was chosen to get a summed row of its own. It
	 * comes first when groups are sorted, even before groups of a higher rank: some rows are
	 * reserved for idle waits.
	 */
	bool is_first;
	bool is_idle;
	bool is_disk;
	bool is_bare; /* see is_bare() */
};

struct fold_member {
	struct fold_key key;
	uint32_t item;
};

static int key_compare(const struct fold_key *a, const struct fold_key *b)
{
	return memcmp(a, b, sizeof(*a));
}

/* Compares all but the last member. */
static int group_key_compare(const struct fold_key *a, const struct fold_key *b)
{
	return memcmp(a, b, offsetof(struct fold_key, own));
}

static int member_compare(const void *x, const void *y)
{
	const struct fold_member *a = x, *b = y;
	int r = key_compare(&a->key, &b->key);

	return r ? r : a->item < b->item ? -1 : a->item > b->item;
}

/*
 * Compares two items or two groups of items, for sorting. Items that are not idle waits come before
 * idle waits. If both are idle or both are not, the longer time comes first. If the times are
 * equal, too, uninterruptible sleep (D) comes first.
 */
static int rank_compare(bool is_idle_a, bool is_idle_b, uint64_t a, uint64_t b, bool is_disk_a,
			bool is_disk_b)
{
	if (is_idle_a != is_idle_b)
		return is_idle_a - is_idle_b;
	if (a != b)
		return a > b ? -1 : 1;
	return is_disk_b - is_disk_a;
}

static int group_compare(const void *x, const void *y)
{
	const struct fold_group *a = x, *b = y;
	int r = rank_compare(a->is_idle, b->is_idle, a->ns, b->ns, a->is_disk, b->is_disk);

	if (a->is_first != b->is_first)
		return b->is_first - a->is_first;
	if (a->is_bare != b->is_bare)
		return a->is_bare - b->is_bare;
	return r ? r : group_key_compare(&a->key, &b->key);
}

static uint64_t stack_id(const struct stack *stack)
{
	return stack ? stack->id : 0;
}

static int64_t compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/*
 * Compares items by rank (see rank_compare()). Items with is_summed come last. Items of equal rank
 * are ordered by their ids.
 */
static int item_compare(const void *x, const void *y, void *userdata)
{
	const struct fold *fold = userdata;
	const struct fold_item *a = x, *b = y;
	int64_t r;

	if (a->is_first != b->is_first)
		return b->is_first - a->is_first;
	if (a->is_summed != b->is_summed)
		return a->is_summed - b->is_summed;
	r = rank_compare(a->is_idle, b->is_idle, a->ns, b->ns, a->is_disk, b->is_disk);
	if (r)
		return (int)r;
	r = compare_u64(fold->in->images[a->image].uid, fold->in->images[b->image].uid);
	if (r)
		return (int)r;
	r = compare_u64(a->state, b->state);
	if (r)
		return (int)r;
	r = memcmp(a->places, b->places, sizeof(a->places));
	if (r)
		return (int)r;
	r = compare_u64(a->waker, b->waker);
	if (r)
		return (int)r;
	r = compare_u64(a->extra, b->extra);
	if (r)
		return (int)r;
	r = compare_u64(stack_id(a->kernel), stack_id(b->kernel));
	if (r)
		return (int)r;
	return (int)compare_u64(stack_id(a->user), stack_id(b->user));
}

size_t fold_items_sort(const struct fold *fold, struct fold_item *items, size_t n)
{
	size_t whole = 0, i;

	for (i = 0; i < n; i++) {
		const struct fold_image *image = &fold->images[items[i].image];

		items[i].is_sum = items[i].processes || image->is_alone;
		items[i].is_summed = items[i].is_sum || image->is_small;
	}
	if (n)
		qsort_r(items, n, sizeof(*items), item_compare, (void *)fold);
	while (whole < n && !items[whole].is_summed)
		items[whole++].target = FOLD_NONE;
	return whole;
}

/*
 * Shares out `max` rows among items (rows or threads to be folded) or groups of items: n_busy of
 * them are not idle, n_idle are idle. Returns the number of rows for those that are not idle. A
 * quarter of the rows is reserved for idle items, if there are enough of them: long idle waits
 * matter more than short waits that are not idle.
 */
static size_t busy_share(size_t n_busy, size_t n_idle, size_t max)
{
	size_t idle = max / 4 < n_idle ? max / 4 : n_idle;

	return n_busy < max - idle ? n_busy : max - idle;
}

/*
 * Chooses `max` of n items or groups, of which the first `busy` are not idle, and n_busy of those:
 * stores in is_first[] which. images[i] is the entry of fold.images to which number i belongs.
 */
static void choose(struct fold *fold, const uint32_t *images, size_t busy, size_t n_busy, size_t n,
		   size_t max, bool *is_first)
{
	fold_owners_choose(fold, images, busy, n_busy, is_first);
	fold_owners_choose(fold, images + busy, n - busy, max - n_busy, is_first + busy);
}

int fold_items_choose(struct fold *fold, struct fold_item *items, size_t n, bool is_busy_first,
		      size_t *stay_out)
{
	const size_t whole = fold_items_sort(fold, items, n), max = fold->limits->max_rows;
	_cleanup_(freep) uint32_t *images = calloc(whole + 1, sizeof(*images));
	_cleanup_(freep) bool *is_first = calloc(whole + 1, sizeof(*is_first));
	size_t busy = 0, n_busy, i;

	if (!images || !is_first)
		return -ENOMEM;
	*stay_out = whole < max ? whole : max;
	if (whole <= max)
		return 0;
	while (busy < whole && !items[busy].is_idle)
		busy++;
	n_busy = busy_share(busy, is_busy_first ? 0 : whole - busy, max);
	for (i = 0; i < whole; i++)
		images[i] = items[i].image;
	choose(fold, images, busy, n_busy, whole, max, is_first);
	for (i = 0; i < whole; i++)
		items[i].is_first = is_first[i];
	qsort_r(items, n, sizeof(*items), item_compare, fold);
	return 0;
}

static struct fold_key key_of(const struct fold *fold, const struct fold_item *item)
{
	const struct fold_image *image = &fold->images[item->image];

	return (struct fold_key){
		.image = image->hash,
		.state = item->state,
		.kernel = item->places[0],
		.user = item->places[1],
		.waker = item->waker,
		.extra = item->extra,
		.own = image->own,
	};
}

/*
 * Returns the key of the summed row without stacks for items of the same cgroup, or of the same
 * process or name if these keep their sums, and of the same state. Idle waits get a key of their
 * own, because a summed row has no stacks that would show which waits are idle.
 */
static struct fold_key key_of_others(struct fold *fold, const struct fold_item *item)
{
	return (struct fold_key){
		.image = fold_image_rest(fold, item->image),
		.state = (item->state & ~STATE_SEEDED) | (item->is_idle ? STATE_IDLE : 0),
		.extra = item->extra,
	};
}

/* Appends to *targets a summed row for this item and for those with the same key. */
static int target_add(struct fold *fold, const struct fold_item *items, uint32_t item,
		      const struct fold_key *key, bool is_others, struct fold_targets *targets)
{
	struct fold_target *target;

	if (array_reserve(targets->v, targets->capacity, targets->n + 1))
		return -ENOMEM;
	target = &targets->v[targets->n];
	*target = (struct fold_target){
		.kernel = is_others ? NULL : items[item].kernel,
		.user = is_others ? NULL : items[item].user,
		.state = (uint32_t)key->state,
		.item = item,
		.is_others = is_others,
	};
	targets->n++;
	return fold_image_slot(fold, items[item].image, is_others, &target->image);
}

/*
 * True for an item that has nothing to lose in a summed row without stacks: it comes from such a
 * row, or it has no stacks and its process keeps its sum.
 */
static bool is_bare(const struct fold *fold, const struct fold_item *item)
{
	const struct fold_image *image = &fold->images[item->image];

	if (image->is_others)
		return true;
	return (image->own || image->keeps_sum) && !item->kernel && !item->user;
}

/*
 * Sorts members[] by key, and makes one group of all members with the same key. Returns the number
 * of groups.
 */
static size_t groups_make(const struct fold *fold, const struct fold_item *items,
			  struct fold_member *members, size_t n, struct fold_group *groups)
{
	const struct fold_item *item;
	struct fold_group *group;
	size_t i, n_groups = 0;

	qsort(members, n, sizeof(*members), member_compare);
	for (i = 0; i < n; i++) {
		item = &items[members[i].item];
		if (i == 0 || group_key_compare(&members[i].key, &members[i - 1].key) != 0)
			groups[n_groups++] = (struct fold_group){
				.key = members[i].key,
				.image = item->image,
				.first = i,
				.is_idle = item->is_idle,
				.is_disk = item->is_disk,
				.is_bare = is_bare(fold, item),
			};
		group = &groups[n_groups - 1];
		group->ns += item->ns;
		group->n++;
	}
	return n_groups;
}

/*
 * Appends to *targets the summed rows of each group: one for each process that keeps its sum, and
 * one for the others. Assigns each of the group's items to its row. 0 or -ENOMEM.
 */
static int groups_place(struct fold *fold, struct fold_item *items,
			const struct fold_member *members, const struct fold_group *groups,
			size_t n, bool is_others, struct fold_targets *targets)
{
	size_t i, k;
	int r = 0;

	for (i = 0; i < n; i++) {
		const struct fold_member *member = &members[groups[i].first];

		for (k = 0; k < groups[i].n; k++, member++) {
			if (!k || key_compare(&member->key, &member[-1].key) != 0)
				r = target_add(fold, items, member->item, &member->key, is_others,
					       targets);
			if (r)
				return r;
			items[member->item].target = (uint32_t)targets->n - 1;
		}
	}
	return 0;
}

/*
 * Appends to *targets summed rows without stacks for the items of these groups, see
 * key_of_others().
 */
static int others_place(struct fold *fold, struct fold_item *items,
			const struct fold_member *members, const struct fold_group *groups,
			size_t n, struct fold_targets *targets)
{
	_cleanup_(freep) struct fold_member *rest = NULL;
	_cleanup_(freep) struct fold_group *others = NULL;
	size_t n_rest = 0, i, k, capacity = 0;

	for (i = 0; i < n; i++) {
		if (array_reserve(rest, capacity, n_rest + groups[i].n))
			return -ENOMEM;
		for (k = 0; k < groups[i].n; k++) {
			rest[n_rest].item = members[groups[i].first + k].item;
			rest[n_rest].key = key_of_others(fold, &items[rest[n_rest].item]);
			n_rest++;
		}
	}
	others = calloc(n_rest + 1, sizeof(*others));
	if (!others)
		return -ENOMEM;
	if (!n_rest)
		return 0;
	n = groups_make(fold, items, rest, n_rest, others);
	return groups_place(fold, items, rest, others, n, true, targets);
}

/*
 * Sorts the groups so that those that get a summed row of their own come first, and stores their
 * number in *whole_out. 0 or -ENOMEM.
 */
static int groups_choose(struct fold *fold, struct fold_group *groups, size_t n, size_t *whole_out)
{
	_cleanup_(freep) uint32_t *images = calloc(n + 1, sizeof(*images));
	_cleanup_(freep) bool *is_first = calloc(n + 1, sizeof(*is_first));
	size_t max = fold->limits->max_folded, busy = 0, whole, i;

	if (!images || !is_first)
		return -ENOMEM;
	if (n)
		qsort(groups, n, sizeof(*groups), group_compare);
	while (busy < n && !groups[busy].is_bare && !groups[busy].is_idle)
		busy++;
	for (whole = busy; whole < n && !groups[whole].is_bare;)
		whole++;
	*whole_out = whole < max ? whole : max;
	if (whole <= max)
		return 0;
	for (i = 0; i < whole; i++)
		images[i] = groups[i].image;
	choose(fold, images, busy, busy_share(busy, whole - busy, max), whole, max, is_first);
	for (i = 0; i < whole; i++)
		groups[i].is_first = is_first[i];
	qsort(groups, n, sizeof(*groups), group_compare);
	return 0;
}

/*
 * Returns the largest time of the groups that are not idle. The groups get only rows of "(others)".
 */
static uint64_t lacks_of(const struct fold_group *groups, size_t n)
{
	uint64_t most = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (!groups[i].is_bare && !groups[i].is_idle && groups[i].ns > most)
			most = groups[i].ns;
	return most;
}

int fold_items_group(struct fold *fold, struct fold_item *items, size_t n,
		     struct fold_targets *targets)
{
	_cleanup_(freep) struct fold_member *members = calloc(n + 1, sizeof(*members));
	_cleanup_(freep) struct fold_group *groups = calloc(n + 1, sizeof(*groups));
	size_t i, n_groups, whole;
	int r;

	if (!members || !groups)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		members[i] = (struct fold_member){ key_of(fold, &items[i]), (uint32_t)i };
	n_groups = n ? groups_make(fold, items, members, n, groups) : 0;
	r = groups_choose(fold, groups, n_groups, &whole);
	if (r)
		return r;
	targets->lacks_ns = lacks_of(groups + whole, n_groups - whole);
	r = groups_place(fold, items, members, groups, whole, false, targets);
	return r ? r
		 : others_place(fold, items, members, groups + whole, n_groups - whole, targets);
}

static void target_count(void *userdata, uint64_t key, uint32_t processes, uint32_t started)
{
	struct fold_targets *targets = userdata;

	targets->v[key].processes += processes;
	targets->v[key].started += started;
}

/* Counts the processes of each summed row, and calls fold_use_add() for each item. 0 or -ENOMEM. */
static int targets_count(struct fold *fold, const struct fold_item *items, size_t n,
			 struct fold_targets *targets)
{
	struct fold_uses uses = {};
	size_t i, before;
	int r = 0;

	for (i = 0; i < n && !r; i++) {
		before = fold->uses.n;
		r = fold_use_add(fold, targets->v[items[i].target].image, &items[i]);
		if (r || fold->uses.n == before)
			continue;
		r = array_reserve(uses.v, uses.capacity, uses.n + 1);
		if (r)
			break;
		uses.v[uses.n] = fold->uses.v[before];
		uses.v[uses.n++].key = items[i].target;
	}
	if (!r)
		fold_uses_count(&uses, target_count, targets);
	free(uses.v);
	return r;
}

static int targets_add(struct fold *fold, struct fold_item *items, size_t n,
		       struct fold_targets *targets, fold_add add)
{
	struct fold_target *target;
	size_t i;
	int r = fold_items_group(fold, items, n, targets);

	if (r)
		return r;
	r = targets_count(fold, items, n, targets);
	/* One item of each row first: so the rows come in the order of targets->v. */
	for (i = 0; i < targets->n && !r; i++)
		r = add(fold, &items[targets->v[i].item], &targets->v[i]);
	for (i = 0; i < n && !r; i++) {
		target = &targets->v[items[i].target];
		if (target->item != i)
			r = add(fold, &items[i], target);
	}
	return r;
}

int fold_items_sum(struct fold *fold, struct fold_item *items, size_t n, bool has_lacks,
		   fold_add add)
{
	struct fold_targets targets = {};
	int r = targets_add(fold, items, n, &targets, add);

	if (has_lacks && targets.lacks_ns > fold->out->lacks_ns)
		fold->out->lacks_ns = targets.lacks_ns;
	free(targets.v);
	return r;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/store/downsample.h"
#include "daemon/store/internal.h"
#include "daemon/store/summary.h"
#include "daemon/store/window_row.h"

/*
 * The maximum number of pids of folded processes in a window, for each row that the window may
 * have, see members_trim().
 */
enum { MEMBERS_A_ROW = 2 };

/* The minimum time between two evictions of windows that are too old. */
#define EVICT_EVERY_NS (250 * NS_PER_MS)

/* Consecutive windows on disk, of one session and in one tier, oldest first. */
struct group {
	struct store_entry *entries;
	size_t n;	  /* number of windows that can be merged into one; at least 1 */
	bool is_complete; /* the session has a window after the group in the same tier */
	struct tier_row oldest;
};

bool store_continues(const struct store_entry *entry, const struct store_entry *before)
{
	int64_t step = entry->real_offset_ns - before->real_offset_ns;
	int64_t slept = entry->boot_offset_ns - before->boot_offset_ns;

	return entry->run == before->run && entry->start_ns == before->end_ns &&
	       step <= NS_PER_MS && step >= -NS_PER_MS && slept <= NS_PER_MS && slept >= -NS_PER_MS;
}

size_t store_group_size(const struct store_entry *entries, size_t n, int64_t length_ns)
{
	int64_t slot = store_entry_start(&entries[0]) / length_ns;
	size_t size = 1;

	while (size < n && size < STORE_PARTS_MAX &&
	       store_continues(&entries[size], &entries[size - 1]) &&
	       store_entry_start(&entries[size]) / length_ns == slot)
		size++;
	return size;
}

/*
 * Returns the age of a window in ns. The age of a window of this run of stackd is measured by
 * CLOCK_BOOTTIME: if the host's real clock is wrong for a minute, stackd must not merge or evict
 * all windows.
 */
static int64_t age_of(const struct store *store, const struct store_entry *entry)
{
	if (entry->run == (uint64_t)store->run)
		return store->now(CLOCK_BOOTTIME) - (entry->end_ns + entry->boot_offset_ns);
	return store->now(CLOCK_REALTIME) - store_entry_end(entry);
}

/*
 * The functions that give store_blob_encode() the row numbers of the stacks and processes of a
 * merged window.
 */
struct merged_names {
	/* gives the row numbers of stacks and processes that the reader has loaded */
	struct store_names loaded;
	/*
	 * gives the row numbers of the other processes: folding the merged window has made them, to
	 * stand for several processes each; adds their rows to the database
	 */
	struct store_names added;
	struct store *store;
	unsigned int tiers; /* the tier of the merged window, as in struct id_set */
};

static int merged_stack(void *userdata, struct stack *stack, int64_t *out)
{
	struct merged_names *names = userdata;
	int r = names->loaded.stack_number(names->loaded.userdata, stack, out);

	if (r || names->store->collect.phase == COLLECT_NONE)
		return r;
	return id_set_add(&names->store->collect.marks.stacks, *out, names->tiers);
}

static int merged_process(void *userdata, struct process *process, int64_t *out)
{
	struct merged_names *names = userdata;
	int r = names->loaded.process_number(names->loaded.userdata, process, out);

	if (r == -ENOENT)
		return names->added.process_number(names->added.userdata, process, out);
	if (r || names->store->collect.phase == COLLECT_NONE)
		return r;
	return id_set_add(&names->store->collect.marks.processes, *out, names->tiers);
}

int store_tier_fold(const struct store *store, size_t tier, struct window *window,
		    struct window **out)
{
	const struct window_fold_limits limits =
		store_fold_limits(&store->fold, store->sums[tier].level);

	return window_fold(window, &limits, out);
}

int store_merged_encode(struct store *store, struct store_reader *reader,
			const struct window *window, size_t tier, struct bytes *blob)
{
	struct merged_names merged = {
		.loaded = store_reader_names(reader),
		.added = store_intern_names(store->intern, window, tier),
		.store = store,
		.tiers = 1U << tier,
	};
	const struct store_names names = {
		.stack_number = merged_stack,
		.process_number = merged_process,
		.userdata = &merged,
	};

	return store_blob_encode(window, window->run, &names, blob);
}

/*
 * Deletes the rows of the group's windows and adds the row of the window merged from them, in the
 * open transaction. length_ns is the length of windows in the tier of the merged window.
 */
static int group_replace_in(struct store *store, struct store_reader *reader,
			    const struct group *group, const struct window *window,
			    int64_t length_ns)
{
	struct store_entry entry = store_entry_of(window, window->run);
	_cleanup_(bytes_fini) struct bytes blob = {};
	size_t i;
	int r = store_merged_encode(store, reader, window, group->oldest.tier + 1, &blob);

	entry.id = group->entries[0].id;
	for (i = 0; i < group->n && !r; i++)
		r = store_tier_drop(store, group->entries[i].id);
	if (r)
		return r;
	r = store_row_add(&store->db, &entry, &blob);
	if (r)
		return r;
	return store_tier_add(store, &entry, length_ns, blob.n,
			      store_tier_rows(store, group->oldest.tier + 1));
}

int store_step_end(struct store *store, int r)
{
	if (!r)
		r = store_db_run(&store->db, "COMMIT");
	if (!r)
		return 0;
	if (!sqlite3_get_autocommit(store->db.handle))
		store_db_run(&store->db, "ROLLBACK");
	store_intern_forget(store->intern);
	store_tiers_sum(store);
	return r;
}

static int early_note(struct store *store, const struct group *group, bool is_early)
{
	if (!is_early)
		return 0;
	return store_tier_note_early(store, group->oldest.tier,
				     store_entry_end(&group->entries[group->n - 1]));
}

/* Moves the windows of the group to the next tier, in the open transaction. */
static int group_move_in(struct store *store, const struct group *group, bool is_early)
{
	struct tier_row row;
	size_t i;
	int r;

	for (i = 0; i < group->n; i++) {
		r = store_tier_get(store, group->entries[i].id, &row);
		if (r)
			return r;
		r = store_tier_move(store, &row);
		if (r)
			return r;
	}
	return early_note(store, group, is_early);
}

/* Moves the windows of the group to the next tier without merging them. */
static int group_move(struct store *store, const struct group *group, bool is_early)
{
	int r = store_db_run(&store->db, "BEGIN IMMEDIATE");

	if (r)
		return r;
	return store_step_end(store, group_move_in(store, group, is_early));
}

static int group_replace(struct store *store, struct store_reader *reader,
			 const struct group *group, const struct window *window, bool is_early)
{
	size_t tier = group->oldest.tier;
	const struct store_tier *next = &store->tiers[tier + 1];
	int64_t own = tier ? store->tiers[tier].length_ns : 0;
	/*
	 * One step merges at most STORE_PARTS_MAX windows. If the period has more windows, the
	 * merged window stays in its tier, to be merged again with the others.
	 */
	bool is_part = group->n == STORE_PARTS_MAX &&
		       window->end_ns - window->start_ns < next->length_ns / 2;
	int r = store_db_run(&store->db, "BEGIN IMMEDIATE");

	if (r)
		return r;
	r = group_replace_in(store, reader, group, window, is_part ? own : next->length_ns);
	if (!r)
		r = early_note(store, group, is_early);
	r = store_step_end(store, r);
	if (r)
		return r;
	pthread_mutex_lock(&store->lock);
	store->stats.compacted += group->n;
	pthread_mutex_unlock(&store->lock);
	return 0;
}

/*
 * Limits the number of pids in window->members, which lists the folded processes, to MEMBERS_A_ROW
 * times the number of rows that the tier allows. Counts the pids that are left out in
 * window->folded.unlisted. Without the limit, the pids of a window of ten minutes would take more
 * bytes than its rows. The window was made by this thread and is not shared yet.
 */
static void members_trim(const struct store *store, size_t tier, struct window *window)
{
	size_t most = MEMBERS_A_ROW * (size_t)store_tier_rows(store, tier);

	if (!most || window->n_members <= most)
		return;
	window->folded.unlisted += window->n_members - most;
	window->n_members = most;
}

/*
 * Merges the loaded windows of the group into one window. Then folds the merged window (see
 * window_fold()) to the number of rows that the next tier allows.
 */
static int group_downsample(struct store *store, const struct group *group,
			    struct window *const *windows, struct window **out)
{
	struct window *merged;
	int r = store_downsample(windows, group->n, &merged);

	if (r)
		return r;
	r = store_tier_fold(store, group->oldest.tier + 1, merged, out);
	window_unref(merged);
	if (!r)
		members_trim(store, group->oldest.tier + 1, *out);
	return r;
}

bool store_is_unmergeable(int r)
{
	return r == -EBADMSG || r == -EIO || r == -E2BIG;
}

/*
 * Merges the group's windows into one window of the next tier. If that cannot be done, moves the
 * windows to the next tier without merging them: nothing would be evicted from a tier whose oldest
 * windows stay in it, and nothing written once the database is full.
 */
static int group_merge(struct store *store, const struct group *group, bool is_early)
{
	struct window *windows[STORE_PARTS_MAX] = {}, *window = NULL;
	struct store_reader *reader = NULL;
	size_t i;
	int r;

	if (group->n == 1)
		return group_move(store, group, is_early);
	r = store_reader_borrow(&store->db, &reader);
	for (i = 0; i < group->n && !r; i++)
		r = store_reader_load(reader, &group->entries[i], &windows[i]);
	if (!r)
		r = group_downsample(store, group, windows, &window);
	if (!r)
		r = group_replace(store, reader, group, window, is_early);
	window_unref(window);
	for (i = 0; i < group->n; i++)
		window_unref(windows[i]);
	store_reader_close(reader);
	return store_is_unmergeable(r) ? group_move(store, group, is_early) : r;
}

static int entries_read(struct store *store, const struct tier_row *oldest, size_t max,
			struct group *group, size_t *n_out)
{
	group->entries = calloc(max, sizeof(*group->entries));
	if (!group->entries)
		return -ENOMEM;
	return store_tier_entries(store, oldest->tier, oldest->session, oldest->id, max,
				  group->entries, n_out);
}

/*
 * Finds the oldest windows of a tier that can be merged into one. Returns 0; -ENOENT if the
 * tier is empty; -EBADMSG if the oldest window cannot be read; or another errno. The caller frees
 * group->entries.
 */
static int group_find(struct store *store, size_t tier, struct group *group)
{
	size_t n = 0;
	int r = store_tier_oldest(store, tier, &group->oldest);

	if (r)
		return r;
	r = entries_read(store, &group->oldest, STORE_PARTS_MAX + 1, group, &n);
	if (r)
		return r;
	if (!n || group->entries[0].id != group->oldest.id)
		return -EBADMSG;
	group->n = tier + 1 < store->n_tiers
			   ? store_group_size(group->entries, n, store->tiers[tier + 1].length_ns)
			   : 1;
	group->is_complete = group->n < n;
	return 0;
}

/* Evicts a window in a transaction of its own. */
static int evict(struct store *store, const struct tier_row *row, bool is_early, const char *reason,
		 uint64_t *counter)
{
	int r = store_db_run(&store->db, "BEGIN IMMEDIATE");

	if (r)
		return r;
	r = store_evict_window(store, row->id, row->end_ns, reason, counter);
	if (!r && is_early)
		r = store_tier_note_early(store, row->tier, row->end_ns);
	return store_step_end(store, r);
}

/* Moves a window to the next tier without merging it. */
static int oldest_move(struct store *store, const struct tier_row *row)
{
	int r = store_db_run(&store->db, "BEGIN IMMEDIATE");

	return r ? r : store_step_end(store, store_tier_move(store, row));
}

/*
 * True if the group gets no further windows: a later window follows it, its run of stackd has
 * ended, or its session has recorded nothing for a long time. A group that gets further windows is
 * not merged yet, because that would make several windows of one period.
 */
static bool is_whole(const struct store *store, size_t tier, const struct group *group)
{
	uint64_t session = group->oldest.session;

	return group->is_complete || group->entries[0].run != (uint64_t)store->run ||
	       session >= STORE_ALWAYS_MAX ||
	       store->now(CLOCK_MONOTONIC) - store->taken_ns[session] >
		       2 * store->tiers[tier + 1].length_ns;
}

/*
 * Merges the oldest group of windows in a tier other than the last one. Returns 0; -EAGAIN if later
 * windows may belong to the group; or another errno.
 */
static int oldest_merge(struct store *store, size_t tier)
{
	struct group group = {};
	int r = group_find(store, tier, &group);

	if (!r)
		r = is_whole(store, tier, &group) ? group_merge(store, &group, true) : -EAGAIN;
	else if (r == -EBADMSG)
		r = oldest_move(store, &group.oldest);
	free(group.entries);
	return r;
}

/*
 * Replaces a window on disk by the window `folded`, which was made from it. If is_changed is false,
 * the two are equal: only the row limit of the window on disk is changed.
 */
static int window_replace(struct store *store, struct store_reader *reader,
			  const struct tier_row *row, const struct window *folded, bool is_changed)
{
	struct store_entry entry = store_entry_of(folded, folded->run);
	_cleanup_(bytes_fini) struct bytes blob = {};
	uint32_t rows = store_tier_rows(store, row->tier);
	int r;

	if (!is_changed)
		return store_tier_resize(store, row, row->size, rows);
	r = store_merged_encode(store, reader, folded, row->tier, &blob);
	if (r)
		return r;
	r = store_tier_drop_summary(store, row);
	if (r)
		return r;
	store_summary_again(store, row);
	r = store_db_change(&store->db, STATEMENT_WINDOW_DROP, "i", row->id);
	if (r)
		return r;
	entry.id = row->id;
	r = store_row_add(&store->db, &entry, &blob);
	if (r)
		return r;
	return store_tier_resize(store, row, (int64_t)blob.n, rows);
}

/*
 * Loads the window of a row of a tier. Sets *out to NULL if it is gone or cannot be read. Returns 0
 * or a negative errno.
 */
static int row_load(struct store *store, struct store_reader *reader, const struct tier_row *row,
		    struct window **out)
{
	struct group group = {};
	size_t n;
	int r = entries_read(store, row, 1, &group, &n);

	*out = NULL;
	if (!r && n && group.entries[0].id == row->id)
		r = store_reader_load(reader, &group.entries[0], out);
	free(group.entries);
	return store_is_unmergeable(r) ? 0 : r;
}

/* Folds the loaded window of a row of a tier, and writes the result in place of it. */
static int window_fold_row(struct store *store, struct store_reader *reader,
			   const struct tier_row *row, struct window *window)
{
	struct window *folded;
	int r = store_tier_fold(store, row->tier, window, &folded);

	if (r)
		return r;
	r = store_db_run(&store->db, "BEGIN IMMEDIATE");
	if (!r)
		r = store_step_end(store,
				   window_replace(store, reader, row, folded, folded != window));
	window_unref(folded);
	return r;
}

/*
 * Folds a window on disk to the number of rows that its tier allows now. A window that cannot be
 * read, or would become too large, is not changed.
 */
static int row_fold(struct store *store, const struct tier_row *row)
{
	struct store_reader *reader = NULL;
	struct window *window;
	int r = store_reader_borrow(&store->db, &reader);

	if (r)
		return r;
	r = row_load(store, reader, row, &window);
	if (!r && window)
		r = window_fold_row(store, reader, row, window);
	window_unref(window);
	store_reader_close(reader);
	return r == -EBADMSG || r == -E2BIG ? 0 : r;
}

/*
 * Finds the oldest window that has more rows than the tier allows now, and folds it. If no window
 * has more, halves the number of rows that the tier allows, and tries again. Returns 0; -ENOENT if
 * the number was halved STORE_LEVEL_MAX times and no window has more rows; or another errno.
 */
static int oldest_fold(struct store *store, size_t tier)
{
	struct tier_sums *sums = &store->sums[tier];
	struct tier_row row;
	int r = -ENOENT;

	if (!store->fold.max_rows)
		return -ENOENT;
	if (sums->level)
		r = store_tier_widest(store, tier, &row);
	while (r == -ENOENT && sums->level < STORE_LEVEL_MAX) {
		sums->level++;
		sums->folded_to = 0;
		r = store_tier_widest(store, tier, &row);
	}
	if (r)
		return r;
	sums->folded_to = row.id;
	return row_fold(store, &row);
}

static int tier_evict(struct store *store, size_t tier)
{
	struct tier_row row;
	int r;

	if (tier >= store->n_tiers)
		return -ENOENT;
	r = store_tier_oldest(store, tier, &row);
	return r ? r
		 : evict(store, &row, true, "dropped for [store] max_size",
			 &store->stats.evicted_size);
}

int store_tier_evict(struct store *store)
{
	return tier_evict(store, store_tier_over(store, 0));
}

int store_tier_yield(struct store *store, bool may_fold)
{
	unsigned int skipped = 0;
	size_t tier;
	int r;

	tier = store_tier_over(store, 0);
	if (may_fold && tier < store->n_tiers) {
		r = oldest_fold(store, tier);
		if (r != -ENOENT)
			return r;
	}
	while ((tier = store_tier_over(store, skipped)) + 1 < store->n_tiers) {
		r = oldest_merge(store, tier);
		if (r != -EAGAIN)
			return r;
		skipped |= 1U << tier;
	}
	return tier < store->n_tiers ? tier_evict(store, tier) : store_tier_evict(store);
}

/*
 * Evicts the oldest window of the last tier if its age is above the tier's keep_ns, which is at
 * most max_age. Evicts at most four windows a second, so that a clock that is wrong for a moment
 * costs only a few windows.
 */
static int last_step(struct store *store, const struct group *group)
{
	int64_t age = age_of(store, &group->entries[0]), now = store->now(CLOCK_MONOTONIC);
	int r;

	if (age <= store->tiers[store->n_tiers - 1].keep_ns || now < store->evict_next_ns)
		return 0;
	store->evict_next_ns = now + EVICT_EVERY_NS;
	r = evict(store, &group->oldest, false, "older than [store] max_age",
		  &store->stats.evicted_age);
	return r ? r : 1;
}

/*
 * True if the group gets no further windows and all of its windows are old enough for the next
 * tier.
 */
static bool is_due(const struct store *store, size_t tier, const struct group *group)
{
	int64_t age = store->tiers[tier].keep_ns + store->tiers[tier + 1].length_ns;

	return is_whole(store, tier, group) &&
	       (!store->tiers[tier].share || age_of(store, &group->entries[0]) >= age);
}

/*
 * Merges the oldest group of windows of a tier if it is old enough. In the last tier, evicts the
 * oldest window instead. Returns 1 if it did this, 0 if nothing was old enough, or a negative
 * errno.
 */
static int tier_step(struct store *store, size_t tier)
{
	struct group group = {};
	bool is_last = tier + 1 == store->n_tiers;
	int r = group_find(store, tier, &group);

	if (r == -EBADMSG) {
		r = is_last ? evict(store, &group.oldest, false, "unreadable on disk",
				    &store->stats.evicted_age)
			    : oldest_move(store, &group.oldest);
		r = r ? r : 1;
	} else if (!r && is_last) {
		r = last_step(store, &group);
	} else if (!r && is_due(store, tier, &group)) {
		r = group_merge(store, &group, false);
		r = r ? r : 1;
	}
	free(group.entries);
	return r == -ENOENT ? 0 : r;
}

int store_compact_step(struct store *store)
{
	size_t i;
	int r;

	for (i = 0; i < store->n_tiers; i++) {
		size_t tier = store->tier_next++ % store->n_tiers;

		r = tier_step(store, tier);
		if (r)
			return r;
	}
	return 0;
}

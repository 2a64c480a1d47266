/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/base.h"
#include "common/search.h"
#include "daemon/base/hash.h"
#include "daemon/window/fold_internal.h"
#include "daemon/window/idle_wait.h"

/* At least this number of cgroups may each have an "(others)" entry, even if max_folded is lower.
 */
enum { CGROUPS_LEAST = 64 };

/*
 * Used in place of a cgroup that may not have an "(others)" entry of its own: all such cgroups
 * share one.
 */
#define CGROUP_REST UINT64_C(1)

static uint64_t hash_text(uint64_t seed, const char *text)
{
	return text ? hash64_string(seed, text) : hash64(seed, "", 1);
}

static bool is_others(const struct process_info *process)
{
	return process->is_folded && !process->exe && strcmp(process->comm, WINDOW_OTHERS) == 0;
}

static void image_init(const struct window *in, const struct window_image *from,
		       struct fold_image *image)
{
	const struct process_info *process = &image->process;
	int64_t started_ns;

	process_info_at(from->process, window_middle_ns(in), &image->process);
	image->kept = FOLD_NONE;
	image->cgroup = hash_text(HASH64_SEED + process->is_kernel, process->cgroup);
	image->name = hash_text(hash_text(image->cgroup, process->comm), process->exe);
	image->hash = hash64(image->name, from->comm, sizeof(from->comm));
	image->is_alone = !process->id.pid && !process->is_folded;
	if (image->is_alone)
		image->hash = image->cgroup = hash64(from->uid, from->comm, sizeof(from->comm));
	image->is_others = is_others(process);
	started_ns = (int64_t)process->id.start_boot_ns - in->boot_offset_ns;
	image->has_started = !process->is_folded && started_ns >= in->start_ns;
}

int fold_images_init(struct fold *fold)
{
	size_t i;

	fold->images = calloc(fold->in->n_images + 1, sizeof(*fold->images));
	if (!fold->images)
		return -ENOMEM;
	for (i = 0; i < fold->in->n_images; i++)
		image_init(fold->in, &fold->in->images[i], &fold->images[i]);
	return fold_owners_init(fold);
}

void fold_images_fini(struct fold *fold)
{
	key_table_fini(&fold->slots);
	key_table_fini(&fold->cgroups);
	fold_owners_fini(fold);
	free(fold->images);
	free(fold->uses.v);
}

int fold_image_keep(struct fold *fold, uint32_t image, uint32_t *out)
{
	const struct window_image *from = &fold->in->images[image];
	struct window_image *added;

	if (fold->images[image].kept == FOLD_NONE) {
		added = window_add_image(fold->out);
		if (!added)
			return -ENOMEM;
		*added = *from;
		process_ref(added->process);
		fold->images[image].kept = (uint32_t)fold->out->n_images - 1;
	}
	*out = fold->images[image].kept;
	return 0;
}

/*
 * Returns the process that stands for the process of entry `image` of in.images after this entry is
 * folded. It stands for all processes with the same comm, exe and cgroup. If is_others is true, it
 * stands for processes of the cgroup, whatever their comm and exe are. If is_rest is also true, it
 * stands for processes of several cgroups.
 */
static struct process *folded_process(const struct fold *fold, uint32_t image, bool is_others,
				      bool is_rest)
{
	const struct process_info *from = &fold->images[image].process;
	struct process_info shared = {
		.is_kernel = from->is_kernel,
		.cgroup = is_rest ? NULL : from->cgroup,
		.exe = is_others ? NULL : from->exe,
	};

	memcpy(shared.comm, is_others ? WINDOW_OTHERS : from->comm,
	       is_others ? sizeof(WINDOW_OTHERS) : sizeof(shared.comm));
	return process_see_folded(fold->in->images[image].process, &shared);
}

/* Adds an entry to out.images that stands for several processes or threads. 0 or -ENOMEM. */
static int image_add(struct fold *fold, uint32_t image, bool is_others, bool is_rest)
{
	const struct fold_image *from = &fold->images[image];
	struct process *process = from->own ? process_ref(fold->in->images[image].process)
					    : folded_process(fold, image, is_others, is_rest);
	struct window_image *added = process ? window_add_image(fold->out) : NULL;
	const char *comm = from->own   ? from->own_comm
			   : is_others ? WINDOW_OTHERS
				       : fold->in->images[image].comm;
	struct process_info info;

	if (!added) {
		process_unref(process);
		return -ENOMEM;
	}
	process_info(process, &info);
	added->process = process;
	memcpy(added->comm, comm, strnlen(comm, COMM_LEN));
	added->start_boot_ns = info.id.start_boot_ns;
	added->uid = window_folded_uid(added);
	added->exec_gen = info.id.exec_gen;
	return 0;
}

int fold_image_slot(struct fold *fold, uint32_t image, bool is_others, uint32_t *out)
{
	const struct fold_image *from = &fold->images[image];
	uint64_t key = from->own ? from->own : from->hash;
	struct fold_slot *slot;
	bool is_new;
	int r;

	if (from->is_alone)
		return fold_image_keep(fold, image, out);
	is_others = from->is_others || (is_others && !from->own && !from->keeps_sum);
	if (is_others)
		key = fold_image_rest(fold, image);
	slot = key_table_get(&fold->slots, &key, &is_new);
	if (!slot)
		return -ENOMEM;
	if (is_new) {
		r = image_add(fold, image, is_others, key == CGROUP_REST);
		if (r)
			return r;
		slot->image = (uint32_t)fold->out->n_images - 1;
	}
	*out = slot->image;
	return 0;
}

uint64_t fold_image_rest(struct fold *fold, uint32_t image)
{
	const struct fold_image *from = &fold->images[image];
	const uint64_t cgroup = from->cgroup;
	struct fold_slot *slot = NULL;
	bool is_new;

	if (from->own)
		return from->own;
	if (from->keeps_sum && !from->is_others)
		return from->hash;
	if (from->is_alone || key_table_find(&fold->cgroups, &cgroup))
		return cgroup;
	if (fold->cgroups.n < fold->limits->max_folded || fold->cgroups.n < CGROUPS_LEAST)
		slot = key_table_get(&fold->cgroups, &cgroup, &is_new);
	return slot ? cgroup : CGROUP_REST;
}

/*
 * The time of one thread's rows, waits, samples and I/O operations (its items), by which
 * fold_images_limit() ranks the threads.
 */
struct image_time {
	uint64_t uid;
	uint64_t busy_ns;
	uint64_t idle_ns;
	uint32_t image; /* index in in.images */
	bool has_items; /* the thread has items; their time may be 0 */
};

/* Sorts threads with more time first; those of equal time by their numbers. */
static int time_compare(uint64_t a, uint64_t b, const struct image_time *x,
			const struct image_time *y)
{
	if (a != b)
		return a > b ? -1 : 1;
	if (x->uid != y->uid)
		return x->uid < y->uid ? -1 : 1;
	return x->image < y->image ? -1 : x->image > y->image;
}

static int busy_compare(const void *x, const void *y)
{
	const struct image_time *a = x, *b = y;

	return time_compare(a->busy_ns, b->busy_ns, a, b);
}

static int idle_compare(const void *x, const void *y)
{
	const struct image_time *a = x, *b = y;

	return time_compare(a->idle_ns, b->idle_ns, a, b);
}

/*
 * Adds an item's time to that of its thread. A wait counts with at most the length of the window,
 * so that waits of many days do not outrank all others.
 */
static void time_add(const struct window *in, struct image_time *time, uint64_t ns, bool is_idle)
{
	uint64_t most = (uint64_t)(in->end_ns - in->start_ns);

	if (ns > most)
		ns = most;
	time->has_items = true;
	if (is_idle)
		time->idle_ns += ns;
	else
		time->busy_ns += ns;
}

static bool is_idle(const struct fold *fold, uint32_t image, uint32_t state,
		    const struct stack *kernel, const struct stack *user)
{
	return wait_is_idle(state, fold->images[image].process.is_kernel, kernel, user);
}

static void waits_time(const struct fold *fold, struct image_time *times)
{
	const struct window *in = fold->in;
	size_t i;

	for (i = 0; i < in->n_rows; i++) {
		const struct window_row *row = &in->rows[i];

		time_add(in, &times[row->image], row->blocked_ns + row->runnable_ns,
			 is_idle(fold, row->image, row->state, row->kernel, row->user));
	}
	for (i = 0; i < in->n_spans; i++) {
		const struct window_span *span = &in->spans[i];

		time_add(in, &times[span->image], (uint64_t)(span->end_ns - span->start_ns),
			 is_idle(fold, span->image, span->state, span->kernel, span->user));
	}
	for (i = 0; i < in->n_opens; i++) {
		const struct window_open *open = &in->opens[i];

		time_add(in, &times[open->image], (uint64_t)(in->end_ns - open->start_ns),
			 is_idle(fold, open->image, open->state, open->kernel, open->user));
	}
}

static void counts_time(const struct fold *fold, struct image_time *times)
{
	const struct window *in = fold->in;
	size_t i;

	for (i = 0; i < in->n_samples; i++)
		time_add(in, &times[in->samples[i].image],
			 in->samples[i].on_ns ? in->samples[i].on_ns : in->samples[i].count, false);
	for (i = 0; i < in->n_ios; i++)
		time_add(in, &times[in->ios[i].image],
			 in->ios[i].total_ns ? in->ios[i].total_ns : in->ios[i].oldest_ns, false);
}

/*
 * Moves the threads that have items, and were not folded before, to the front of times[]. Returns
 * their number.
 */
static size_t times_pack(const struct fold *fold, struct image_time *times)
{
	const struct window *in = fold->in;
	size_t i, n = 0;

	for (i = 0; i < in->n_images; i++) {
		if (!times[i].has_items || in->images[i].folded || fold->images[i].is_alone)
			continue;
		times[n] = times[i];
		times[n].uid = in->images[i].uid;
		times[n++].image = (uint32_t)i;
	}
	return n;
}

/*
 * Chooses `max` of n threads, which are sorted by rank, and moves them to the front; the others
 * stay in order. 0 or -ENOMEM.
 */
static int times_choose(struct fold *fold, struct image_time *times, size_t n, size_t max)
{
	_cleanup_(freep) struct image_time *others = calloc(n + 1, sizeof(*others));
	_cleanup_(freep) uint32_t *images = calloc(n + 1, sizeof(*images));
	_cleanup_(freep) bool *is_chosen = calloc(n + 1, sizeof(*is_chosen));
	size_t i, chosen = 0, left = 0;

	if (!others || !images || !is_chosen)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		images[i] = times[i].image;
	fold_owners_choose(fold, images, n, max, is_chosen);
	for (i = 0; i < n; i++) {
		if (is_chosen[i])
			times[chosen++] = times[i];
		else
			others[left++] = times[i];
	}
	memcpy(times + chosen, others, left * sizeof(*others));
	return 0;
}

int fold_images_limit(struct fold *fold)
{
	_cleanup_(freep) struct image_time *times = NULL;
	size_t max = fold->limits->max_images, busy, n_busy = 0, n, i;
	int r;

	if (!max)
		return 0;
	times = calloc(fold->in->n_images + 1, sizeof(*times));
	if (!times)
		return -ENOMEM;
	waits_time(fold, times);
	counts_time(fold, times);
	n = times_pack(fold, times);
	if (n <= max)
		return 0;
	qsort(times, n, sizeof(*times), busy_compare);
	/* Where fewer threads are busy, more idle ones stay. */
	while (n_busy < n && times[n_busy].busy_ns)
		n_busy++;
	busy = n_busy < max - max / 4 ? n_busy : max - max / 4;
	r = times_choose(fold, times, n_busy, busy);
	if (r)
		return r;
	qsort(times + busy, n - busy, sizeof(*times), idle_compare);
	r = times_choose(fold, times + busy, n - busy, max - busy);
	for (i = max; i < n; i++)
		fold->images[times[i].image].is_small = true;
	return r;
}

int fold_use_add(struct fold *fold, uint32_t image, const struct fold_item *item)
{
	struct fold_uses *uses = &fold->uses;
	const struct fold_image *from = &fold->images[item->image];

	if (from->is_alone)
		return 0;
	if (array_reserve(uses->v, uses->capacity, uses->n + 1))
		return -ENOMEM;
	uses->v[uses->n++] = (struct fold_use){
		.key = image,
		.process = (uintptr_t)fold->in->images[item->image].process,
		.from = item->image,
		.processes = item->processes ? item->processes : !from->process.is_folded,
		.started = item->processes ? item->started : from->has_started,
	};
	return 0;
}

static int use_compare(const void *x, const void *y)
{
	const struct fold_use *a = x, *b = y;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

void fold_uses_count(struct fold_uses *uses,
		     void (*add)(void *userdata, uint64_t key, uint32_t processes,
				 uint32_t started),
		     void *userdata)
{
	uint32_t processes, started;
	size_t i, k;

	if (uses->n)
		qsort(uses->v, uses->n, sizeof(*uses->v), use_compare);
	for (i = 0; i < uses->n; i = k) {
		processes = started = 0;
		for (k = i; k < uses->n && use_compare(&uses->v[i], &uses->v[k]) == 0; k++) {
			if (uses->v[k].processes > processes)
				processes = uses->v[k].processes;
			if (uses->v[k].started > started)
				started = uses->v[k].started;
		}
		add(userdata, uses->v[i].key, processes, started);
	}
}

static void image_count(void *userdata, uint64_t key, uint32_t processes, uint32_t started)
{
	struct window *out = userdata;

	out->images[key].folded += processes;
	out->images[key].started += started;
}

static void window_count(void *userdata, uint64_t key, uint32_t processes, uint32_t started)
{
	struct window_folded *folded = userdata;

	folded->processes += processes;
	folded->started += started;
}

static int pid_compare(const void *x, const void *y)
{
	int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;

	return a < b ? -1 : a > b;
}

/*
 * Returns a sorted array of the pids of processes that have rows or entries which were folded
 * before. The caller frees the array.
 */
static int32_t *pids_before(const struct window *in)
{
	int32_t *pids = calloc(in->n_members + 1, sizeof(*pids));
	size_t i;

	for (i = 0; pids && i < in->n_members; i++)
		pids[i] = in->members[i].pid;
	if (pids && in->n_members)
		qsort(pids, in->n_members, sizeof(*pids), pid_compare);
	return pids;
}

/*
 * Adds to window.folded the number of processes of which rows or entries are folded now for the
 * first time.
 */
static int processes_count(struct fold *fold)
{
	_cleanup_(freep) int32_t *pids = pids_before(fold->in);
	struct fold_uses *uses = &fold->uses;
	size_t i, n = 0;

	if (!pids)
		return -ENOMEM;
	for (i = 0; i < uses->n; i++) {
		const struct process_info *process = &fold->images[uses->v[i].from].process;

		if (process->is_folded || bsearch(&process->id.pid, pids, fold->in->n_members,
						  sizeof(*pids), pid_compare))
			continue;
		uses->v[n] = uses->v[i];
		uses->v[n++].key = 0;
	}
	uses->n = n;
	fold_uses_count(uses, window_count, &fold->out->folded);
	return 0;
}

/*
 * Appends to *members the processes (window_member) of use->from. This is the index of an entry of
 * in.images that was folded before, and so stands for several processes. That entry is now folded
 * into the entry use->key of out.images, which gets its processes.
 */
static int members_move(const struct window *in, const struct fold_use *use,
			struct window_member **members, size_t *n, size_t *capacity)
{
	size_t at = SEARCH(in->n_members, i, in->members[i].image < use->from);

	for (; at < in->n_members && in->members[at].image == use->from; at++) {
		if (array_reserve(*members, *capacity, *n + 1))
			return -ENOMEM;
		(*members)[(*n)++] = (struct window_member){
			.image = (uint32_t)use->key,
			.pid = in->members[at].pid,
		};
	}
	return 0;
}

static int members_make(struct fold *fold)
{
	_cleanup_(freep) struct window_member *members = NULL;
	size_t n = 0, capacity = 0, i;
	int r = 0;

	for (i = 0; i < fold->uses.n && !r; i++) {
		const struct fold_use *use = &fold->uses.v[i];
		const struct process_info *process = &fold->images[use->from].process;

		if (process->is_folded) {
			r = members_move(fold->in, use, &members, &n, &capacity);
			continue;
		}
		r = array_reserve(members, capacity, n + 1);
		if (!r)
			members[n++] = (struct window_member){
				.image = (uint32_t)use->key,
				.pid = process->id.pid,
			};
	}
	return r ? r : window_set_members(fold->out, members, n);
}

int fold_members_finish(struct fold *fold)
{
	int r;

	fold_uses_count(&fold->uses, image_count, fold->out);
	r = members_make(fold);
	return r ? r : processes_count(fold);
}

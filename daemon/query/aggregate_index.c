/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/query/own_process.h"
#include "daemon/window/fold.h"

struct aggregate_wait *aggregate_wait_find(struct aggregate *aggregate, uint64_t uid,
					   int64_t start_ns)
{
	uint64_t key[2] = { uid, (uint64_t)start_ns };
	struct aggregate_wait *wait;

	HASH_FIND(hh, aggregate->waits, key, sizeof(key), wait);
	return wait;
}

/* Finds a wait in the table of waits, or adds it. Returns NULL when out of memory. */
static struct aggregate_wait *wait_add(struct aggregate *aggregate, uint64_t uid, int64_t start_ns)
{
	struct aggregate_wait *wait = aggregate_wait_find(aggregate, uid, start_ns);

	if (wait)
		return wait;
	wait = calloc(1, sizeof(*wait));
	if (!wait) {
		aggregate->error = -ENOMEM;
		return NULL;
	}
	wait->key[0] = uid;
	wait->key[1] = (uint64_t)start_ns;
	HASH_ADD(hh, aggregate->waits, key, sizeof(wait->key), wait);
	if (!HASH_HAS(wait)) {
		free(wait);
		aggregate->error = -ENOMEM;
		return NULL;
	}
	return wait;
}

static void wait_free(struct aggregate *aggregate, struct aggregate_wait *wait)
{
	HASH_DEL(aggregate->waits, wait);
	stack_unref(wait->span.kernel);
	stack_unref(wait->span.user);
	stack_unref(wait->user);
	free(wait);
}

void aggregate_waits_drop(struct aggregate *aggregate, const struct window *window)
{
	struct aggregate_wait *wait, *next;

	HASH_ITER (hh, aggregate->waits, wait, next)
		if ((int64_t)wait->key[1] >= window->start_ns)
			wait_free(aggregate, wait);
}

void aggregate_spans_index(struct aggregate *aggregate, const struct window *window)
{
	struct aggregate_wait *wait;
	size_t i;

	for (i = 0; i < window->n_spans; i++) {
		const struct window_span *span = &window->spans[i];

		wait = wait_add(aggregate, window->images[span->image].uid, span->start_ns);
		if (!wait || wait->has_span)
			continue;
		/*
		 * Keep a copy: the wait began in an earlier window, which is read later, when this
		 * window may have been freed.
		 */
		wait->span = *span;
		wait->has_span = true;
		stack_ref(span->kernel);
		stack_ref(span->user);
	}
}

void aggregate_opens_index(struct aggregate *aggregate, const struct window *last)
{
	struct aggregate_wait *wait;
	size_t i;

	for (i = 0; i < last->n_opens; i++) {
		const struct window_open *open = &last->opens[i];

		if (open->count)
			continue;
		wait = wait_add(aggregate, last->images[open->image].uid, open->start_ns);
		if (!wait)
			continue;
		wait->is_open_at_end = true;
		wait->user = stack_ref(open->user);
		wait->is_unseen = open->state & STATE_UNSEEN;
	}
}

void aggregate_waits_take(struct aggregate *aggregate, struct aggregate *newer)
{
	struct aggregate_wait *wait, *next;

	aggregate->waits = TAKE(newer->waits);
	HASH_ITER (hh, aggregate->waits, wait, next) {
		if (!wait->has_span) {
			/* It had not ended: the windows to read now have it, too, if it is theirs.
			 */
			wait_free(aggregate, wait);
			continue;
		}
		stack_unref(TAKE(wait->user));
		wait->is_open_at_end = wait->is_unseen = wait->is_counted = false;
	}
}

void aggregate_image_process(const struct window *window, const struct window_image *image,
			     struct process_info *out)
{
	const struct window_owner *owner;

	if (image->process) {
		process_info_at(image->process, window_middle_ns(window), out);
		return;
	}
	owner = &window->owners[image->owner];
	*out = (struct process_info){
		.id = owner->id,
		.is_kernel = owner->is_kernel,
		.is_folded = owner->is_folded,
		.cgroup = owner->cgroup,
	};
	memcpy(out->comm, owner->comm, sizeof(out->comm));
}

static int seen_add(struct aggregate *aggregate, const struct int_list *ids)
{
	struct aggregate_seen *seen;
	uint64_t id;
	size_t i;

	for (i = 0; i < ids->n; i++) {
		id = (uint64_t)ids->v[i];
		HASH_FIND(hh, aggregate->seen, &id, sizeof(id), seen);
		if (seen)
			continue;
		seen = arena_alloc(aggregate->arena, sizeof(*seen));
		if (!seen)
			return -ENOMEM;
		seen->id = id;
		HASH_ADD(hh, aggregate->seen, id, sizeof(seen->id), seen);
		if (!HASH_HAS(seen))
			return -ENOMEM;
	}
	return 0;
}

int aggregate_seen_init(struct aggregate *aggregate)
{
	const struct wire_filter *wire = aggregate->filter->wire;
	int r = wire ? seen_add(aggregate, &wire->pids) : 0;

	return r || !wire ? r : seen_add(aggregate, &wire->tids);
}

const struct aggregate_seen *aggregate_seen_find(const struct aggregate *aggregate, int64_t id)
{
	uint64_t key = (uint64_t)id;
	struct aggregate_seen *seen;

	HASH_FIND(hh, aggregate->seen, &key, sizeof(key), seen);
	return seen;
}

/*
 * If the filter names the tid or the pid of this thread, notes that the thread or its process was
 * seen.
 */
static void seen_note(struct aggregate *aggregate, const struct window_image *image,
		      const struct process_info *process)
{
	uint64_t pid = (uint64_t)process->id.pid, tid = (uint64_t)image->tid;
	struct aggregate_seen *seen;

	HASH_FIND(hh, aggregate->seen, &pid, sizeof(pid), seen);
	if (seen)
		seen->is_process = true;
	HASH_FIND(hh, aggregate->seen, &tid, sizeof(tid), seen);
	if (!seen || seen->is_thread)
		return;
	seen->is_thread = true;
	seen->pid = process->id.pid;
	memcpy(seen->comm, process->comm, sizeof(seen->comm));
}

/*
 * Counts a thread, and its process unless it is that of the thread that was counted last: threads
 * of a process follow each other in most cases.
 */
static int image_count(struct aggregate *aggregate, const struct window_image *image,
		       const struct process_info *process)
{
	struct process_id *last = &aggregate->last_counted;
	int r = aggregate_set_add(&aggregate->threads, (uint64_t)image->tid, image->start_boot_ns,
				  false);

	if (r || (process->id.pid == last->pid && process->id.start_boot_ns == last->start_boot_ns))
		return r;
	*last = process->id;
	return aggregate_set_add(&aggregate->processes, (uint64_t)process->id.pid,
				 process->id.start_boot_ns, false);
}

/*
 * Notes that the filter selects a folded entry of window->images: one that stands for several
 * processes. Returns NULL when out of memory.
 */
static struct aggregate_folded *folded_note(struct aggregate *aggregate,
					    const struct window_image *image)
{
	struct aggregate_folded *folded;

	HASH_FIND(hh, aggregate->folded_images, &image->uid, sizeof(image->uid), folded);
	if (!folded) {
		folded = arena_alloc(aggregate->arena, sizeof(*folded));
		if (!folded)
			return NULL;
		folded->uid = image->uid;
		memcpy(folded->comm, image->comm, sizeof(folded->comm));
		HASH_ADD(hh, aggregate->folded_images, uid, sizeof(folded->uid), folded);
		if (!HASH_HAS(folded))
			return NULL;
	}
	return folded;
}

static void member_add(struct aggregate *aggregate, int64_t pid,
		       const struct aggregate_folded *folded)
{
	size_t i;

	for (i = 0; i < aggregate->n_members; i++)
		if (aggregate->members[i].pid == pid && aggregate->members[i].folded == folded)
			return;
	if (i < AGGREGATE_MEMBERS_MAX)
		aggregate->members[aggregate->n_members++] =
			(struct aggregate_member){ pid, folded };
}

/*
 * Selects the folded entries of window->images that stand for the process with this pid, among
 * others. If is_others is true, selects only entries with the name "(others)"; otherwise only
 * entries with other names. Returns their number, or -ENOMEM.
 */
static int member_select(struct aggregate *aggregate, const struct window *window, int64_t pid,
			 bool is_others, struct aggregate_image_info *infos)
{
	struct aggregate_folded *folded;
	uint32_t i;
	int n = 0;

	for (i = 0; i < window->n_images; i++) {
		const struct window_image *image = &window->images[i];

		if (!image->folded || (strcmp(image->comm, WINDOW_OTHERS) == 0) != is_others ||
		    !filter_has_member(aggregate->filter, window, i, &infos[i].process,
				       (int32_t)pid))
			continue;
		folded = folded_note(aggregate, image);
		if (!folded ||
		    (!infos[i].is_wanted && image_count(aggregate, image, &infos[i].process)))
			return -ENOMEM;
		infos[i].is_wanted = true;
		member_add(aggregate, pid, folded);
		n++;
	}
	return n;
}

bool aggregate_wants(const void *filter, const struct window *window)
{
	const struct wire_filter *wire = ((const struct filter *)filter)->wire;
	struct process_info info;
	uint32_t i;
	size_t k;

	for (i = 0; i < window->n_images; i++) {
		aggregate_image_process(window, &window->images[i], &info);
		if (filter_has_image(filter, &window->images[i], &info))
			return true;
		for (k = 0; wire && k < wire->pids.n; k++)
			if (filter_has_member(filter, window, i, &info, (int32_t)wire->pids.v[k]))
				return true;
	}
	return false;
}

static bool has_process(const struct window *window, const struct aggregate_image_info *infos,
			int64_t pid)
{
	size_t i;

	for (i = 0; i < window->n_images; i++)
		if (infos[i].process.id.pid == pid)
			return true;
	return false;
}

/*
 * Counts the window, for a note, if an entry that stands for several processes stands for this one,
 * too: then some of its rows are in the sums of that entry. The process has an entry of its own in
 * window->images.
 */
static void partly_folded_note(struct aggregate *aggregate, const struct window *window,
			       int64_t pid, const struct aggregate_image_info *infos)
{
	uint64_t id = (uint64_t)pid;
	struct aggregate_seen *seen;
	uint32_t i;

	HASH_FIND(hh, aggregate->seen, &id, sizeof(id), seen);
	for (i = 0; seen && i < window->n_images; i++) {
		if (!infos[i].process.is_folded ||
		    !filter_has_member(aggregate->filter, window, i, &infos[i].process,
				       (int32_t)pid))
			continue;
		seen->partly_folded++;
		return;
	}
}

/*
 * For each pid of the filter that has no entry of its own in window->images, selects the folded
 * entries that stand for this process, among others. Selects an entry with the name "(others)" only
 * if no entry with another name stands for the process. Returns 0 or -ENOMEM.
 */
static int members_select(struct aggregate *aggregate, const struct window *window,
			  struct aggregate_image_info *infos)
{
	const struct wire_filter *wire = aggregate->filter->wire;
	size_t i;
	int r = 0;

	for (i = 0; wire && window->n_members && i < wire->pids.n && i < AGGREGATE_MEMBERS_MAX;
	     i++) {
		int64_t pid = wire->pids.v[i];

		if (has_process(window, infos, pid)) {
			partly_folded_note(aggregate, window, pid, infos);
			continue;
		}
		r = member_select(aggregate, window, pid, false, infos);
		if (!r)
			r = member_select(aggregate, window, pid, true, infos);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * For each selected folded entry of window->images, adds the number of processes that it stands for
 * to the entry's sum in aggregate->folded_images. Returns 0 or -ENOMEM.
 */
static int folded_count(struct aggregate *aggregate, const struct window *window,
			const struct aggregate_image_info *infos)
{
	struct aggregate_folded *folded;
	size_t i;

	for (i = 0; i < window->n_images; i++) {
		const struct window_image *image = &window->images[i];

		if (!image->folded || !infos[i].is_wanted)
			continue;
		folded = folded_note(aggregate, image);
		if (!folded)
			return -ENOMEM;
		window_processes_add(&folded->processes, &folded->started, image->folded,
				     image->started);
	}
	return 0;
}

/*
 * True for a thread of stackd. The windows on disk do not have the paths of programs. A path is
 * read only where the control group does not tell: reading waits for the thread that loads the next
 * windows, and stackd is in all of them.
 */
static bool is_own(const struct aggregate *aggregate, const struct aggregate_image_info *info)
{
	const struct aggregate_options *options = &aggregate->options;
	const struct process_info *process = &info->process;
	struct process_info full;
	struct process *from_disk;

	if (!own_process_has_name(process->comm))
		return false;
	if (own_process_is(process->comm, process->exe, process->cgroup))
		return true;
	if (info->handle.process || !options->find_process)
		return false;
	from_disk = options->find_process(options->userdata, &info->handle);
	if (!from_disk)
		return false;
	process_info(from_disk, &full);
	return own_process_is(process->comm, full.exe, process->cgroup);
}

/* Sets infos from window->images, and counts those that the filter selects. */
static int infos_fill(struct aggregate *aggregate, const struct window *window,
		      struct aggregate_image_info *infos)
{
	size_t i;
	int r;

	for (i = 0; i < window->n_images; i++) {
		const struct window_image *image = &window->images[i];
		struct aggregate_image_info *info = &infos[i];

		aggregate_image_process(window, image, &info->process);
		info->handle.process = image->process;
		info->handle.at_ns = window_middle_ns(window);
		if (!image->process)
			info->handle.number = window->owners[image->owner].number;
		if (aggregate->seen)
			seen_note(aggregate, image, &info->process);
		info->is_wanted = filter_has_image(aggregate->filter, image, &info->process);
		info->is_excluded = !info->is_wanted &&
				    filter_excludes_image(aggregate->filter, image, &info->process);
		if (aggregate->options.folds_own)
			info->is_own = is_own(aggregate, info);
		if (!info->is_wanted)
			continue;
		r = image_count(aggregate, image, &info->process);
		if (r)
			return r;
	}
	r = members_select(aggregate, window, infos);
	if (r)
		return r;
	return folded_count(aggregate, window, infos);
}

struct aggregate_image_info *aggregate_infos_make(struct aggregate *aggregate,
						  const struct window *window)
{
	_cleanup_(freep) struct aggregate_image_info *infos =
		calloc(window->n_images + 1, sizeof(*infos));
	size_t i;
	int r;

	if (!infos)
		return NULL;
	r = infos_fill(aggregate, window, infos);
	for (i = 0; i < window->n_images; i++)
		aggregate->has_others |= infos[i].process.is_folded && !infos[i].is_wanted &&
					 strcmp(infos[i].process.comm, WINDOW_OTHERS) == 0;
	return r ? NULL : TAKE(infos);
}

void aggregate_index_free(struct aggregate *aggregate)
{
	struct aggregate_wait *wait, *next_wait;

	HASH_ITER (hh, aggregate->waits, wait, next_wait)
		wait_free(aggregate, wait);
	aggregate_set_fini(&aggregate->threads);
	aggregate_set_fini(&aggregate->processes);
	/* Free only the tables here: the memory of their entries is in the arena. */
	HASH_CLEAR(hh, aggregate->seen);
	HASH_CLEAR(hh, aggregate->folded_images);
	HASH_CLEAR(hh, aggregate->names);
}

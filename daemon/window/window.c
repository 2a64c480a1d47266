/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/window.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/base/pages.h"

const char *window_shed_name(unsigned int shed)
{
	static const char *const names[WINDOW_SHED_N] = {
		[WINDOW_SHED_SAMPLES] = "samples",
		[WINDOW_SHED_CALLS] = "calls",
		[WINDOW_SHED_FRAMES] = "frames",
		[WINDOW_SHED_BRIEF] = "brief",
	};

	return shed < WINDOW_SHED_N ? names[shed] : NULL;
}

struct window *window_new(void)
{
	struct window *window = calloc(1, sizeof(*window));

	if (!window)
		return NULL;
	window->refs = 1;
	window->merged_from = 1;
	return window;
}

struct window *window_ref(struct window *window)
{
	atomic_fetch_add(&window->refs, 1);
	return window;
}

#define STACKS_UNREF(window, member)                     \
	for (i = 0; i < (window)->n_##member; i++) {     \
		stack_unref((window)->member[i].kernel); \
		stack_unref((window)->member[i].user);   \
	}

static void references_drop(struct window *window)
{
	size_t i;

	for (i = 0; i < window->n_images; i++)
		process_unref(window->images[i].process);
	STACKS_UNREF(window, rows);
	STACKS_UNREF(window, spans);
	STACKS_UNREF(window, opens);
	STACKS_UNREF(window, samples);
	STACKS_UNREF(window, wakers);
	STACKS_UNREF(window, ios);
}

#define STACKS_VISIT(window, member)                          \
	for (i = 0; i < (window)->n_##member; i++) {          \
		visit(userdata, &(window)->member[i].kernel); \
		visit(userdata, &(window)->member[i].user);   \
	}

void window_visit_stacks(struct window *window, void (*visit)(void *userdata, struct stack **stack),
			 void *userdata)
{
	size_t i;

	STACKS_VISIT(window, rows);
	STACKS_VISIT(window, spans);
	STACKS_VISIT(window, opens);
	STACKS_VISIT(window, samples);
	STACKS_VISIT(window, wakers);
	STACKS_VISIT(window, ios);
}

/*
 * Replaces a user stack of a process that has exited by the shared stack that equals it. Takes over
 * the reference to the old stack. Leaves *stack as it is if it cannot be shared.
 */
static void stack_share(void *userdata, struct stack **stack)
{
	struct stack *shared;

	if (!*stack || !(*stack)->process || !process_has_exited((*stack)->process))
		return;
	shared = stack_table_share(userdata, *stack);
	if (!shared)
		return;
	stack_unref(*stack);
	*stack = shared;
}

void window_share_stacks(struct window *window, struct stack_table *table)
{
	window_visit_stacks(window, stack_share, table);
}

#define ARRAY(member)                                                                 \
	{                                                                             \
		offsetof(struct window, member), offsetof(struct window, n_##member), \
			sizeof(*((struct window *)NULL)->member)                      \
	}

/*
 * Describes each array in struct window: the offset of its pointer, the offset of its number of
 * members, and the size of one member.
 */
static const struct {
	size_t array;
	size_t n;
	size_t size;
} arrays[] = {
	ARRAY(images), ARRAY(rows), ARRAY(spans),      ARRAY(opens),   ARRAY(samples),
	ARRAY(wakers), ARRAY(ios),  ARRAY(io_buckets), ARRAY(buckets), ARRAY(members),
};

static void **array_at(struct window *window, size_t i)
{
	return (void **)((char *)window + arrays[i].array);
}

static void window_free(struct window *window)
{
	size_t i;

	if (!window->is_borrowing)
		references_drop(window);
	for (i = 0; i < window->n_lent; i++)
		stack_unref(window->lent[i]);
	free(window->lent);
	for (i = 0; i < ARRAY_SIZE(arrays) && !window->block; i++)
		free(*array_at(window, i));
	pages_free(window->block, window->block_size);
	for (i = 0; i < window->n_owner_texts; i++)
		free(window->owner_texts[i]);
	free(window->owner_texts);
	free(window->owners);
	window_pressure_fini(&window->pressure);
	window_spawns_fini(&window->spawns);
	window_held_fini(&window->held);
	free(window);
}

struct window *window_unref(struct window *window)
{
	if (window && atomic_fetch_sub(&window->refs, 1) == 1)
		window_free(window);
	return NULL;
}

/*
 * Appends a zeroed member to an array and returns the member; NULL when out of memory. The capacity
 * is not stored, as it follows from n: it doubles whenever n reaches a power of two.
 */
static void *member_add(void **array, size_t *n, size_t size)
{
	char *grown = *array;

	if ((*n & (*n - 1)) == 0) {
		grown = reallocarray(*array, *n ? *n * 2 : 1, size);
		if (!grown)
			return NULL;
		*array = grown;
	}
	return memset(grown + (*n)++ * size, 0, size);
}

struct window_image *window_add_image(struct window *window)
{
	return member_add((void **)&window->images, &window->n_images, sizeof(*window->images));
}

struct window_row *window_add_row(struct window *window)
{
	return member_add((void **)&window->rows, &window->n_rows, sizeof(*window->rows));
}

struct window_span *window_add_span(struct window *window)
{
	return member_add((void **)&window->spans, &window->n_spans, sizeof(*window->spans));
}

struct window_open *window_add_open(struct window *window)
{
	return member_add((void **)&window->opens, &window->n_opens, sizeof(*window->opens));
}

struct window_sample *window_add_sample(struct window *window)
{
	return member_add((void **)&window->samples, &window->n_samples, sizeof(*window->samples));
}

struct window_waker *window_add_waker(struct window *window)
{
	return member_add((void **)&window->wakers, &window->n_wakers, sizeof(*window->wakers));
}

struct window_io *window_add_io(struct window *window)
{
	return member_add((void **)&window->ios, &window->n_ios, sizeof(*window->ios));
}

struct window_member *window_add_member(struct window *window)
{
	return member_add((void **)&window->members, &window->n_members, sizeof(*window->members));
}

static int member_compare(const void *x, const void *y)
{
	const struct window_member *a = x, *b = y;

	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	return a->pid < b->pid ? -1 : a->pid > b->pid;
}

int window_set_members(struct window *window, struct window_member *members, size_t n)
{
	struct window_member *added;
	size_t i;

	if (n)
		qsort(members, n, sizeof(*members), member_compare);
	for (i = 0; i < n; i++) {
		if (i > 0 && member_compare(&members[i], &members[i - 1]) == 0)
			continue;
		if (window->n_members == WINDOW_MEMBERS_MAX) {
			window->folded.unlisted++;
			continue;
		}
		added = window_add_member(window);
		if (!added)
			return -ENOMEM;
		*added = members[i];
	}
	return 0;
}

uint64_t window_folded_uid(const struct window_image *image)
{
	return hash64(image->start_boot_ns, image->comm, sizeof(image->comm));
}

const struct window_waker *window_row_waker(const struct window *window, size_t row)
{
	return row < window->n_wakers ? &window->wakers[row] : NULL;
}

uint64_t window_waker_id(const struct window_waker *waker, bool with_kernel, bool with_user)
{
	uint64_t places[2] = {};

	if (!waker)
		return 0;
	if (with_kernel)
		places[0] = stack_place(waker->kernel);
	if (with_user)
		places[1] = stack_place(waker->user);
	return hash64(hash64(HASH64_SEED, waker->links, sizeof(waker->links)), places,
		      sizeof(places));
}

int window_row_set_buckets(struct window *window, struct window_row *row, const uint32_t *buckets)
{
	uint32_t *slot;
	unsigned int i;

	row->bucket_first = (uint32_t)window->n_buckets;
	row->bucket_mask = 0;
	for (i = 0; i < WAIT_BUCKETS; i++) {
		if (!buckets[i])
			continue;
		slot = member_add((void **)&window->buckets, &window->n_buckets, sizeof(*slot));
		if (!slot)
			return -ENOMEM;
		*slot = buckets[i];
		row->bucket_mask |= 1U << i;
	}
	return 0;
}

void window_row_add_buckets(const struct window *window, const struct window_row *row,
			    uint64_t *sums)
{
	const uint32_t *slot;
	unsigned int i;

	if (!row->bucket_mask) /* the array may be NULL */
		return;
	slot = window->buckets + row->bucket_first;
	for (i = 0; i < WAIT_BUCKETS; i++)
		if (row->bucket_mask & (1U << i))
			sums[i] += *slot++;
}

void window_buckets_narrow(const uint64_t *sums, uint32_t *buckets)
{
	unsigned int i;

	for (i = 0; i < WAIT_BUCKETS; i++)
		buckets[i] = sums[i] < UINT32_MAX ? (uint32_t)sums[i] : UINT32_MAX;
}

int window_io_set_buckets(struct window *window, struct window_io *io, const uint64_t *buckets)
{
	uint64_t *slot;
	unsigned int i;

	io->bucket_first = (uint32_t)window->n_io_buckets;
	io->bucket_mask = 0;
	for (i = 0; i < IO_BUCKETS_N; i++) {
		if (!buckets[i])
			continue;
		slot = member_add((void **)&window->io_buckets, &window->n_io_buckets,
				  sizeof(*slot));
		if (!slot)
			return -ENOMEM;
		*slot = buckets[i];
		io->bucket_mask |= UINT64_C(1) << i;
	}
	return 0;
}

void window_io_add_buckets(const struct window *window, const struct window_io *io, uint64_t *sums)
{
	const uint64_t *slot;
	unsigned int i;

	if (!io->bucket_mask) /* the array may be NULL */
		return;
	slot = window->io_buckets + io->bucket_first;
	for (i = 0; i < IO_BUCKETS_N; i++)
		if (io->bucket_mask & (UINT64_C(1) << i))
			sums[i] += *slot++;
}

void window_io_add(struct window_io *sum, const struct window_io *io)
{
	sum->count += io->count;
	sum->total_ns += io->total_ns;
	sum->own_ns += io->own_ns;
	sum->runnable_ns += io->runnable_ns;
	sum->asleep_ns += io->asleep_ns;
	sum->device_ns += io->device_ns;
	sum->queue_ns += io->queue_ns;
	sum->throttled_ns += io->throttled_ns;
	sum->async += io->async;
	sum->errors += io->errors;
	sum->bytes += io->bytes;
	sum->merges += io->merges;
	sum->requeues += io->requeues;
	sum->open += io->open;
	window_processes_add(&sum->processes, &sum->started, io->processes, io->started);
	if (io->oldest_ns > sum->oldest_ns) {
		sum->oldest_ns = io->oldest_ns;
		sum->oldest_tid = io->oldest_tid;
	}
	if (io->max_ns <= sum->max_ns)
		return;
	sum->max_ns = io->max_ns;
	sum->max_end_ns = io->max_end_ns;
	sum->max_tid = io->max_tid;
}

/* Returns the memory of everything in the window but its arrays, in bytes. */
static size_t head_bytes(const struct window *window)
{
	return sizeof(*window) + window_pressure_bytes(&window->pressure) +
	       window_spawns_bytes(&window->spawns) + window_held_bytes(&window->held);
}

void window_seal(struct window *window)
{
	size_t i, n;
	void **array, *trimmed;

	window->bytes = head_bytes(window);
	for (i = 0; i < ARRAY_SIZE(arrays); i++) {
		array = array_at(window, i);
		n = *(size_t *)((char *)window + arrays[i].n);
		trimmed = n ? reallocarray(*array, n, arrays[i].size) : NULL;
		if (trimmed)
			*array = trimmed;
		window->bytes += n * arrays[i].size;
	}
}

/*
 * Arrays begin at multiples of BLOCK_ALIGN in the block of a window. A block is at least
 * BLOCK_LEAST bytes large, because half a page of it is unused on average.
 */
enum { BLOCK_ALIGN = 16, BLOCK_LEAST = 16 << 10 };

/* Returns the size of array i in the block of a window. */
static size_t array_room(const struct window *window, size_t i)
{
	size_t n = *(const size_t *)((const char *)window + arrays[i].n);

	return (n * arrays[i].size + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
}

void window_pack(struct window *window)
{
	size_t size = 0, at = 0, i;
	char *block;

	for (i = 0; i < ARRAY_SIZE(arrays); i++)
		size += array_room(window, i);
	block = window->block || size < BLOCK_LEAST ? NULL : pages_new(size);
	if (!block)
		return;
	for (i = 0; i < ARRAY_SIZE(arrays); i++) {
		void **array = array_at(window, i);
		size_t n = *(size_t *)((char *)window + arrays[i].n);

		if (n)
			memcpy(block + at, *array, n * arrays[i].size);
		free(*array);
		*array = n ? block + at : NULL;
		at += array_room(window, i);
	}
	window->block = block;
	window->block_size = size;
	window->bytes = head_bytes(window) + pages_bytes(size);
}

const char *window_loss_name(unsigned int loss)
{
	static const char *const names[WINDOW_LOST_N] = {
		[LOST_WAIT_KEYS] = "waits: the window's map was full",
		[LOST_WAIT_RING] = "waits over a cut: the ring was full",
		[LOST_STACK_RING] = "stacks: the ring was full",
		[LOST_STACK_SEEN] = "stacks sent twice: the map of sent ones was full",
		[LOST_THREADS] = "switches of threads beyond max_threads",
		[LOST_THREAD_END] = "final sums of threads: the ring was full",
		[LOST_PROCESS_RING] = "forks, execs and exits: the ring was full",
		[LOST_MAPPING_RING] = "mappings of stacks: the ring was full",
		[LOST_MISSED_OUT] = "switch-outs of threads not known to be on a CPU",
		[LOST_MISSED_IN] = "switch-ins of threads not known to be off CPU",
		[LOST_SAMPLE_KEYS] = "samples: the window's map was full",
		[LOST_NO_HOOK] = "waits whose thread was not seen to go on",
		[LOST_CALL_NESTED] = "calls made while another one was being recorded on that CPU",
		[LOST_CALL_RING] = "streamed calls: the ring was full",
		[LOST_CALL_HELD] = "calls not recorded, and none after them in their window",
		[LOST_IO_KEYS] = "operations: the window's map was full",
		[LOST_IO_SLOTS] = "operations: the table of open ones was full",
		[LOST_IO_DEPTH] = "operations within others, deeper than a thread has room for",
		[LOST_IO_REQUESTS] = "requests: the map of those in flight was full",
		[LOST_IO_PROCESS] = "processes of operations: all are counted, but together",
		[LOST_IO_UNSEEN] = "requests whose issue or end was not seen",
		[LOST_SAMPLES] = "stacks of sampled waits: the window's map was full",
		[LOST_NO_MAP] = "waits: no map for the window",
		[WINDOW_LOST_MISSED_RUNS] = "runs of programs: one was running",
		[WINDOW_LOST_STACK_FRAMES] = "stacks whose frames never arrived, or found no room",
		[WINDOW_LOST_MEMORY] =
			"records: the daemon had no memory, or no room for processes",
		[WINDOW_LOST_WAIT_THREADS] = "waits of threads whose end was lost",
		[WINDOW_LOST_LATE_RECORDS] = "windows made before all their records had come",
		[WINDOW_LOST_OTHER] = "something that another version of stackd counted",
	};

	return loss < WINDOW_LOST_N ? names[loss] : "unknown";
}

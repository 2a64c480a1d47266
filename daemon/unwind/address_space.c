/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/unwind/internal.h"
#include "daemon/unwind/unwind.h"

/*
 * Waits until all BPF programs that may still read segments of freed address spaces have ended.
 * Then frees these segments, so that new address spaces can use them.
 */
static void dead_reclaim(struct unwind *unwind)
{
	struct unwind_dead *dead = TAKE(unwind->dead), *next;

	if (!dead)
		return;
	unwind->memory.wait(unwind->memory.userdata);
	for (; dead; dead = next) {
		next = dead->next;
		range_alloc_give(&unwind->segments_alloc, dead->range.first, dead->range.n);
		free(dead);
	}
}

static int segments_take(struct unwind *unwind, uint32_t n, uint32_t *first_out)
{
	int r = range_alloc_take(&unwind->segments_alloc, n, first_out);

	if (r) {
		dead_reclaim(unwind);
		r = range_alloc_take(&unwind->segments_alloc, n, first_out);
	}
	return r;
}

static struct unwind_segment segment_of(const struct unwind_mapping *mapping)
{
	struct unwind_segment segment = {
		.start = mapping->start,
		.end = mapping->end,
		.state = mapping->state,
		.is_generated = mapping->is_generated,
	};

	if (mapping->file) {
		segment.bias = mapping->start - (mapping->address - mapping->file->base);
		segment.table = mapping->file->table;
	}
	return segment;
}

/*
 * Writes a segment for each mapping. Adjacent mappings of code generated at run time share a
 * segment, because JIT compilers map such code page by page. Returns the number of segments.
 */
static uint32_t segments_fill(struct unwind_segment *segments,
			      const struct unwind_mapping *mappings, size_t n)
{
	uint32_t filled = 0;

	for (size_t i = 0; i < n; i++) {
		struct unwind_segment *last = filled ? &segments[filled - 1] : NULL;

		if (last && last->is_generated && mappings[i].is_generated && !last->state &&
		    !mappings[i].state && last->end == mappings[i].start)
			last->end = mappings[i].end;
		else if (filled < UNWIND_SEGMENTS_MAX)
			segments[filled++] = segment_of(&mappings[i]);
	}
	return filled;
}

static struct address_space *space_place(struct unwind *unwind,
					 const struct unwind_segment *segments, uint32_t n,
					 struct address_space *space)
{
	struct unwind_segment *header;
	uint32_t first;

	if (segments_take(unwind, n + 1, &first)) {
		unwind->stats.segments_full++;
		return NULL;
	}
	header = &unwind->memory.segments[first];
	for (uint32_t i = 0; i < n; i++)
		header[1 + i] = segments[i];
	*space = (struct address_space){
		.unwind = unwind,
		.first = first + 1,
		.n = n,
		.generation = ++unwind->generation,
		.dead = space->dead,
	};
	__atomic_store_n(&header->bias, space->generation, __ATOMIC_RELEASE);
	return space;
}

struct address_space *address_space_new(struct unwind *unwind,
					const struct unwind_mapping *mappings, size_t n)
{
	size_t most = n < UNWIND_SEGMENTS_MAX ? n : UNWIND_SEGMENTS_MAX;
	struct unwind_segment *segments = calloc(most + 1, sizeof(*segments));
	struct address_space *space = calloc(1, sizeof(*space)), *placed = NULL;

	if (space)
		space->dead = calloc(1, sizeof(*space->dead));
	if (segments && space && space->dead) {
		uint32_t filled = segments_fill(segments, mappings, n);

		pthread_mutex_lock(&unwind->lock);
		placed = space_place(unwind, segments, filled, space);
		pthread_mutex_unlock(&unwind->lock);
	}
	free(segments);
	if (!placed && space) {
		free(space->dead);
		free(space);
	}
	return placed;
}

uint64_t address_space_generation(const struct address_space *space)
{
	return space->generation;
}

struct address_space *address_space_free(struct address_space *space)
{
	struct unwind *unwind;

	if (!space)
		return NULL;
	unwind = space->unwind;
	pthread_mutex_lock(&unwind->lock);
	__atomic_store_n(&unwind->memory.segments[space->first - 1].bias, 0, __ATOMIC_RELEASE);
	space->dead->range = (struct unwind_range){ space->first - 1, space->n + 1 };
	space->dead->next = unwind->dead;
	unwind->dead = TAKE(space->dead);
	pthread_mutex_unlock(&unwind->lock);
	free(space);
	return NULL;
}

void unwind_process_set(struct address_space *space, const struct unwind_owner *owner)
{
	struct unwind *unwind = space->unwind;
	struct unwind_process process = {
		.leader_boot_ns = owner->is_exact ? owner->start_boot_ns : 0,
		.ticks = owner->start_boot_ns / UNWIND_TICK_NS,
		.generation = space->generation,
		.tgid = owner->pid,
		.exec_gen = owner->is_exact ? owner->exec_gen : UNWIND_ANY_EXEC,
		.first = space->first,
		.n = space->n,
	};
	int r;

	process.check = unwind_check(&process);
	r = unwind->memory.put(unwind->memory.userdata, &process, !owner->is_exact);
	if (!r || r == -EEXIST)
		return;
	pthread_mutex_lock(&unwind->lock);
	unwind->stats.processes_full++;
	pthread_mutex_unlock(&unwind->lock);
}

int unwind_process_check(struct address_space *space, const struct unwind_owner *owner)
{
	struct unwind *unwind = space->unwind;
	struct unwind_process process;

	if (!unwind->memory.get(unwind->memory.userdata, owner->pid, &process))
		return -ENOENT;
	return process.generation == space->generation ? 0 : -ESTALE;
}

void unwind_process_drop(struct unwind *unwind, const struct unwind_owner *owner)
{
	struct unwind_process process;

	if (!unwind->memory.get(unwind->memory.userdata, owner->pid, &process))
		return;
	/*
	 * Keep the entry if it now belongs to another process with the same pid, or to the same
	 * process after a later execve().
	 */
	if (process.leader_boot_ns ? process.leader_boot_ns != owner->start_boot_ns
				   : process.ticks != owner->start_boot_ns / UNWIND_TICK_NS)
		return;
	if (process.exec_gen != UNWIND_ANY_EXEC && process.exec_gen != owner->exec_gen)
		return;
	unwind->memory.drop(unwind->memory.userdata, owner->pid);
}

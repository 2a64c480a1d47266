/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/unwind/internal.h"
#include "daemon/unwind/unwind.h"

/* What was freed may be written over once programs that may have seen it have ended. */
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

/* JITs make their code page by page: what touches is one. */
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

static struct address_space *run_place(struct unwind *unwind, const struct unwind_segment *segments,
				       uint32_t n, struct address_space *run)
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
	*run = (struct address_space){
		.unwind = unwind,
		.first = first + 1,
		.n = n,
		.generation = ++unwind->generation,
		.dead = run->dead,
	};
	__atomic_store_n(&header->bias, run->generation, __ATOMIC_RELEASE);
	return run;
}

struct address_space *address_space_new(struct unwind *unwind,
					const struct unwind_mapping *mappings, size_t n)
{
	size_t most = n < UNWIND_SEGMENTS_MAX ? n : UNWIND_SEGMENTS_MAX;
	struct unwind_segment *segments = calloc(most + 1, sizeof(*segments));
	struct address_space *run = calloc(1, sizeof(*run)), *placed = NULL;

	if (run)
		run->dead = calloc(1, sizeof(*run->dead));
	if (segments && run && run->dead) {
		uint32_t filled = segments_fill(segments, mappings, n);

		pthread_mutex_lock(&unwind->lock);
		placed = run_place(unwind, segments, filled, run);
		pthread_mutex_unlock(&unwind->lock);
	}
	free(segments);
	if (!placed && run) {
		free(run->dead);
		free(run);
	}
	return placed;
}

uint64_t address_space_generation(const struct address_space *run)
{
	return run->generation;
}

struct address_space *address_space_free(struct address_space *run)
{
	struct unwind *unwind;

	if (!run)
		return NULL;
	unwind = run->unwind;
	pthread_mutex_lock(&unwind->lock);
	__atomic_store_n(&unwind->memory.segments[run->first - 1].bias, 0, __ATOMIC_RELEASE);
	run->dead->range = (struct unwind_range){ run->first - 1, run->n + 1 };
	run->dead->next = unwind->dead;
	unwind->dead = TAKE(run->dead);
	pthread_mutex_unlock(&unwind->lock);
	free(run);
	return NULL;
}

void unwind_process_set(struct address_space *run, const struct unwind_owner *owner)
{
	struct unwind *unwind = run->unwind;
	struct unwind_process process = {
		.leader_boot_ns = owner->is_exact ? owner->start_boot_ns : 0,
		.ticks = owner->start_boot_ns / UNWIND_TICK_NS,
		.generation = run->generation,
		.tgid = owner->pid,
		.exec_gen = owner->is_exact ? owner->exec_gen : UNWIND_ANY_EXEC,
		.first = run->first,
		.n = run->n,
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

void unwind_process_drop(struct unwind *unwind, const struct unwind_owner *owner)
{
	struct unwind_process process;

	if (!unwind->memory.get(unwind->memory.userdata, owner->pid, &process))
		return;
	/* The entry may be of a later image, or of another process by now. */
	if (process.leader_boot_ns ? process.leader_boot_ns != owner->start_boot_ns
				   : process.ticks != owner->start_boot_ns / UNWIND_TICK_NS)
		return;
	if (process.exec_gen != UNWIND_ANY_EXEC && process.exec_gen != owner->exec_gen)
		return;
	unwind->memory.drop(unwind->memory.userdata, owner->pid);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the function of each group, and the time of those of GROUP_BY_LINE over the range. */
#include "daemon/query/aggregate_internal.h"

#include <errno.h>

bool aggregate_line_init(struct aggregate *aggregate, struct aggregate_group *group)
{
	if (group->line)
		*group->line = (struct aggregate_line){};
	else
		group->line = arena_alloc(aggregate->arena, sizeof(*group->line));
	if (!group->line)
		aggregate->error = -ENOMEM;
	return group->line;
}

void aggregate_functions_add(struct aggregate_functions *functions, uint64_t hash, uint64_t ns)
{
	size_t i, least = 0;
	uint64_t less;

	for (i = 0; i < GROUP_FUNCTIONS; i++) {
		if (functions->ns[i] && functions->hashes[i] == hash) {
			functions->ns[i] += ns;
			return;
		}
		if (functions->ns[i] < functions->ns[least])
			least = i;
	}
	less = functions->ns[least] < ns ? functions->ns[least] : ns;
	for (i = 0; i < GROUP_FUNCTIONS; i++)
		functions->ns[i] -= less;
	if (ns == less)
		return;
	functions->hashes[least] = hash;
	functions->ns[least] = ns - less;
}

void aggregate_functions_merge(struct aggregate_functions *sum,
			       const struct aggregate_functions *functions)
{
	for (size_t i = 0; i < GROUP_FUNCTIONS; i++)
		if (functions->ns[i])
			aggregate_functions_add(sum, functions->hashes[i], functions->ns[i]);
}

/*
 * The sets of processes take at most one part in MEMBERS_PART of options.max_memory, of which each
 * member takes at most MEMBER_BYTES.
 */
enum { MEMBERS_PART = 4, MEMBER_BYTES = 4 * sizeof(uint64_t) };

/* Adds a member to a set of a line. Returns true if the set did not have it. */
static bool member_add(struct aggregate *aggregate, struct aggregate_set *set, uint64_t id,
		       uint64_t start)
{
	const uint64_t before = aggregate_set_count(set);
	const size_t max = aggregate->options.max_memory;
	bool is_new;

	if (max && aggregate->line_members >= max / MEMBERS_PART / MEMBER_BYTES)
		return false;
	if (aggregate_set_add(set, id, start, false))
		aggregate->error = -ENOMEM;
	is_new = aggregate_set_count(set) > before;
	aggregate->line_members += is_new;
	return is_new;
}

static void process_member_add(struct aggregate *aggregate, struct aggregate_line *line,
			       const struct process_id *id)
{
	member_add(aggregate, &line->processes, (uint64_t)id->pid, id->start_boot_ns);
}

bool aggregate_line_has_new(struct aggregate *aggregate, struct aggregate_line *line,
			    const struct window_image *image)
{
	return member_add(aggregate, &line->folded, aggregate->n_windows, image->uid);
}

/* Counts a process of a group. Most groups have one only, which needs no set. */
static void process_add(struct aggregate *aggregate, struct aggregate_line *line,
			const struct process_id *id)
{
	if (!line->process.pid)
		line->process = *id;
	if (line->process.pid == id->pid && line->process.start_boot_ns == id->start_boot_ns)
		return;
	if (!line->processes.n)
		process_member_add(aggregate, line, &line->process);
	process_member_add(aggregate, line, id);
}

void aggregate_line_add(struct aggregate *aggregate, struct aggregate_line *line,
			const struct aggregate_item *item)
{
	uint64_t ns = item->on_ns + item->blocked_ns + item->runnable_ns;

	line->slots[aggregate->slot] += ns;
	line->runnable_slots[aggregate->slot] += item->runnable_ns;
	if (!item->info->process.is_kernel && !item->info->process.is_folded)
		process_add(aggregate, line, &item->info->process.id);
}

uint64_t aggregate_line_processes(const struct aggregate_group *group)
{
	uint64_t in_set = aggregate_set_count(&group->line->processes);
	uint64_t processes = in_set ? in_set : group->line->process.pid != 0;
	uint64_t folded = window_processes(group->folded, group->started);

	/* A process may have rows of its own in one window, and be folded in another one. */
	return processes > folded ? processes : folded;
}

const char *aggregate_function(const struct aggregate *aggregate,
			       const struct aggregate_group *group)
{
	const struct aggregate_functions *functions = &group->functions;
	uint64_t all = group->on_ns + group->blocked_ns + group->runnable_ns;
	uint64_t least = group->line ? all / 10 : all / 2 + 1;
	struct aggregate_name *name;
	size_t i, most = 0;

	for (i = 1; i < GROUP_FUNCTIONS; i++)
		if (functions->ns[i] > functions->ns[most])
			most = i;
	if (!functions->ns[most] || functions->ns[most] < least)
		return NULL;
	HASH_FIND(hh, aggregate->names, &functions->hashes[most], sizeof(functions->hashes[most]),
		  name);
	return name ? name->text : NULL;
}

/* Sets the start and the end of window i of a list, in ns since the epoch. */
static void window_times(const struct timeline_list *list, size_t i, int64_t *start, int64_t *end)
{
	const struct window *window;

	if (list->entries) {
		*start = store_entry_start(&list->entries[i]);
		*end = store_entry_end(&list->entries[i]);
		return;
	}
	window = list->windows[i];
	*start = window->start_ns + window->real_offset_ns;
	*end = window->end_ns + window->real_offset_ns;
}

void aggregate_slots_init(struct aggregate *aggregate, const struct timeline_list *list,
			  size_t first, size_t end)
{
	int64_t window_start, window_end, longest = 1;
	size_t i;

	if (aggregate->options.group != GROUP_BY_LINE || first >= end)
		return;
	window_times(list, first, &aggregate->slots_start_ns, &window_end);
	window_times(list, end - 1, &window_start, &aggregate->slots_end_ns);
	for (i = first; i < end; i++) {
		window_times(list, i, &window_start, &window_end);
		if (window_end - window_start > longest)
			longest = window_end - window_start;
	}
	/* No slot is shorter than a window: else none would have its middle in some slots. */
	for (aggregate->n_slots = 1; aggregate->n_slots < AGGREGATE_SLOTS; aggregate->n_slots++)
		if ((aggregate->slots_end_ns - aggregate->slots_start_ns) / longest <=
		    (int64_t)aggregate->n_slots)
			break;
}

void aggregate_slots_next(struct aggregate *aggregate, const struct window *window)
{
	int64_t length = aggregate->slots_end_ns - aggregate->slots_start_ns, middle, slot;

	if (!aggregate->n_slots)
		return;
	middle = window->start_ns + (window->end_ns - window->start_ns) / 2 +
		 window->real_offset_ns - aggregate->slots_start_ns;
	/* The clock may have been set back between two windows. */
	if (length <= 0 || middle < 0)
		slot = 0;
	else if (middle >= length)
		slot = (int64_t)aggregate->n_slots - 1;
	else
		slot = (int64_t)((double)middle / (double)length * (double)aggregate->n_slots);
	if (slot >= (int64_t)aggregate->n_slots)
		slot = (int64_t)aggregate->n_slots - 1;
	aggregate->slot = (size_t)slot;
	if (window->end_ns > window->start_ns)
		aggregate->slots[slot] += (uint64_t)(window->end_ns - window->start_ns);
}

const uint64_t *aggregate_slots(const struct aggregate *aggregate, size_t *n_out)
{
	*n_out = aggregate->n_slots;
	return aggregate->slots;
}

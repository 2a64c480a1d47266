/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/process/internal.h"
#include "daemon/unwind/unwind.h"

/* Stacks come out of the ring a window later at most, or when it fills. */
#define VERSIONS_MAX	 128
#define VERSIONS_FEW	 8
#define VERSIONS_KEEP_NS (60 * NS_PER_S)
#define VERSIONS_FORKED	 4
/* Of all versions of a process but the newest: some have thousands. */
#define VERSIONS_ITEMS 32768

/* What a walk found, which takes the place of what was told of there. */
struct version_found {
	struct unwind_mapping_found mapping;
	bool is_awaited; /* its file was not known yet */
};

/*
 * What was mapped when stacks were walked: what was told then, shared by all of that time, and what
 * the walk itself found.
 */
struct process_version {
	struct process_version *next; /* older */
	uint64_t id;		      /* as in record_stack.mappings */
	bool is_told;
	struct process_maps *maps; /* NULL: nothing is known */
	int64_t made_ns;
	struct process_maps *found_maps; /* of found, what is known; NULL: nothing */
	size_t n_found;
	struct version_found *found; /* UNWIND_FOUND_MAX; NULL: most have none */
};

static struct process_version *version_find(const struct process *process, uint64_t id)
{
	struct process_version *version = process->versions;

	while (version && version->id != id)
		version = version->next;
	return version;
}

static void version_free(struct process_version *version)
{
	process_maps_unref(version->maps);
	process_maps_unref(version->found_maps);
	free(version->found);
	free(version);
}

void process_versions_free(struct process *process)
{
	while (process->versions) {
		struct process_version *version = process->versions;

		process->versions = version->next;
		version_free(version);
	}
}

/* The oldest, until few enough are left. */
static void versions_drop(struct process *process)
{
	int64_t oldest_ns = clock_ns(CLOCK_MONOTONIC) - VERSIONS_KEEP_NS;
	struct process_version **p = &process->versions;
	const struct process_maps *newer = NULL;
	size_t items = 0;

	for (size_t i = 0; *p; i++, p = &(*p)->next) {
		if (newer && (*p)->maps && (*p)->maps != newer)
			items += process_maps_count((*p)->maps);
		newer = (*p)->maps ? (*p)->maps : newer;
		if (i && (items > VERSIONS_ITEMS || i >= VERSIONS_MAX ||
			  (i >= VERSIONS_FEW && (*p)->made_ns <= oldest_ns)))
			break;
	}
	while (*p) {
		struct process_version *version = *p;

		*p = version->next;
		version_free(version);
	}
}

static struct process_version *version_add(struct process *process, uint64_t id, bool is_told,
					   struct process_maps *maps)
{
	struct process_version *version = calloc(1, sizeof(*version));

	if (!version)
		return NULL;
	*version = (struct process_version){
		.next = process->versions,
		.id = id,
		.is_told = is_told,
		.maps = maps ? process_maps_ref(maps) : NULL,
		.made_ns = clock_ns(CLOCK_MONOTONIC),
	};
	process->versions = version;
	versions_drop(process);
	return version;
}

void process_version_add(struct process *process)
{
	struct unwind_run *run = process_maps_run(process->maps);

	if (run && !version_find(process, unwind_run_generation(run)))
		version_add(process, unwind_run_generation(run), true, process->maps);
}

void process_versions_inherit(struct process *process, const struct process *parent)
{
	const struct process_version *versions[VERSIONS_FORKED], *version = parent->versions;
	size_t n = 0;

	for (; version && n < ARRAY_SIZE(versions); version = version->next)
		if (!(version->id & MAPPINGS_FOUND))
			versions[n++] = version;
	while (n--)
		version_add(process, versions[n]->id, true, versions[n]->maps);
}

/* The place of the mapping among those found; NULL when there are too many, or no memory. */
static struct version_found *version_find_found(struct process_version *version,
						const struct unwind_mapping_found *mapping)
{
	struct version_found *found;

	for (size_t i = 0; i < version->n_found; i++)
		if (version->found[i].mapping.start == mapping->start)
			return &version->found[i];
	if (!version->found)
		version->found = calloc(UNWIND_FOUND_MAX, sizeof(*version->found));
	if (!version->found || version->n_found == UNWIND_FOUND_MAX)
		return NULL;
	found = &version->found[version->n_found++];
	*found = (struct version_found){ .mapping = *mapping, .is_awaited = true };
	return found;
}

/* Of this file, or (module NULL) code made at run time, or what is not known yet. */
static void version_set(struct process *process, struct process_version *version,
			struct version_found *found, struct module *module)
{
	struct process_maps *maps;

	if (!module && found->mapping.key.size)
		return;
	if (process_maps_add(process->table->registry, version->found_maps, &found->mapping, module,
			     &maps))
		return;
	process_maps_unref(version->found_maps);
	version->found_maps = maps;
	found->is_awaited = false;
}

void process_version_note(struct process *process, uint64_t id, uint64_t generation,
			  const struct unwind_mapping_found *mapping, struct module *module)
{
	struct process_version *version = version_find(process, id), *base;
	struct version_found *found;

	if (!version) {
		base = version_find(process, generation);
		version = version_add(process, id, generation != 0, base ? base->maps : NULL);
	}
	found = version ? version_find_found(version, mapping) : NULL;
	if (found && found->is_awaited)
		version_set(process, version, found, module);
}

void process_version_settle(struct process *process, uint64_t id)
{
	struct process_version *version = version_find(process, id);

	for (size_t i = 0; version && i < version->n_found; i++) {
		struct version_found *found = &version->found[i];
		struct module *module = NULL;

		if (found->is_awaited)
			module = module_find_code(process->table->registry, &found->mapping.key);
		if (module)
			version_set(process, version, found, module);
		module_unref(module);
	}
}

struct process_maps *process_version_maps(const struct process *process, uint64_t id, uint64_t at,
					  bool *is_told_out)
{
	const struct process_version *version = version_find(process, id);

	/* What is no longer known has no names: what is mapped by now may be something else. */
	*is_told_out = !version || version->is_told;
	for (size_t i = 0; version && i < version->n_found; i++) {
		const struct unwind_mapping_found *mapping = &version->found[i].mapping;

		if (at < mapping->start || at >= mapping->end)
			continue;
		*is_told_out = true;
		return version->found_maps;
	}
	return version ? version->maps : NULL;
}

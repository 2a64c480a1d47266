/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "bpf/shared.h"
#include "daemon/process_table.h"
#include "daemon/unwind.h"
#include "proto/base.h"

/* Stacks come out of the ring a window later at most, or when it fills. */
#define VERSIONS_MAX	 32
#define VERSIONS_FEW	 8
#define VERSIONS_KEEP_NS (60 * NS_PER_S)
#define VERSIONS_FORKED	 4

/* What was mapped when stacks were walked: what was told then, and what the walk itself found. */
struct process_version {
	struct process_version *next; /* older */
	uint64_t id;		      /* as in record_stack.mappings */
	bool is_told;
	struct process_maps *maps; /* NULL: nothing is known */
	int64_t made_ns;
	size_t n_found; /* of those, whose file was not known yet */
	struct unwind_mapping_found *found; /* UNWIND_FOUND_MAX; NULL: most have none */
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

	for (size_t i = 0;
	     *p && (i < VERSIONS_FEW || (i < VERSIONS_MAX && (*p)->made_ns > oldest_ns)); i++)
		p = &(*p)->next;
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
	uint64_t id = run ? unwind_run_generation(run) : 0;

	if (id && !version_find(process, id))
		version_add(process, id, true, process->maps);
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

static void version_set(struct process *process, struct process_version *version,
			const struct unwind_mapping_found *found, struct module *module)
{
	struct process_maps *maps;

	if (process_maps_add(process->table->registry, version->maps, found, module, &maps))
		return;
	process_maps_unref(version->maps);
	version->maps = maps;
}

static bool version_awaits(const struct process_version *version,
			   const struct unwind_mapping_found *found)
{
	for (size_t i = 0; i < version->n_found; i++)
		if (version->found[i].start == found->start)
			return true;
	return false;
}

/* Its file may be known by the time that a stack is named. */
static void version_await(struct process_version *version, const struct unwind_mapping_found *found)
{
	if (!version->found)
		version->found = calloc(UNWIND_FOUND_MAX, sizeof(*version->found));
	if (version->found && version->n_found < UNWIND_FOUND_MAX &&
	    !version_awaits(version, found))
		version->found[version->n_found++] = *found;
}

void process_version_note(struct process *process, uint64_t id, uint64_t generation,
			  const struct unwind_mapping_found *found, struct module *module)
{
	struct process_version *version = version_find(process, id), *base;

	if (!version) {
		base = version_find(process, generation);
		version = version_add(process, id, generation, base ? base->maps : NULL);
	}
	if (!version)
		return;
	version_set(process, version, found, module);
	if (!module && found->key.size)
		version_await(version, found);
}

void process_version_settle(struct process *process, uint64_t id)
{
	struct process_version *version = version_find(process, id);
	struct module *module;
	size_t n = 0;

	for (size_t i = 0; version && i < version->n_found; i++) {
		module = module_find_code(process->table->registry, &version->found[i].key);
		if (module)
			version_set(process, version, &version->found[i], module);
		else
			version->found[n++] = version->found[i];
		module_unref(module);
	}
	if (version)
		version->n_found = n;
}

struct process_maps *process_version_maps(const struct process *process, uint64_t id, uint64_t at,
					  bool *is_told_out)
{
	const struct process_version *version = id ? version_find(process, id) : NULL;

	*is_told_out = version && version->is_told;
	for (size_t i = 0; version && i < version->n_found; i++)
		if (at >= version->found[i].start && at < version->found[i].end)
			*is_told_out = true;
	return version ? version->maps : NULL;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "bpf/layout.h"
#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/process/internal.h"
#include "daemon/unwind/unwind.h"

/*
 * A process keeps at most VERSIONS_MAX versions of its mappings. The newest VERSIONS_FEW are kept
 * at any age. Older ones are kept only for VERSIONS_KEEP_NS, because the functions of a stack are
 * looked up at most one window after the walk. A program that loads plugins and drops them within
 * milliseconds makes hundreds of versions in the second after which a ring is read.
 */
#define VERSIONS_MAX	 512
#define VERSIONS_FEW	 8
#define VERSIONS_KEEP_NS (60 * NS_PER_S)
/* After a fork, the child gets at most this number of versions of the parent's mappings. */
#define VERSIONS_FORKED 4
/*
 * Maximum memory of all versions of one process's mappings together, in bytes, not counting what
 * /proc showed for the newest. Some processes have thousands of mappings.
 */
#define VERSIONS_BYTES (4 * 1024 * 1024)

/*
 * A mapping that a stack walk found. At its addresses, it takes precedence over the mappings in
 * maps_version.maps.
 */
struct walk_mapping {
	struct unwind_mapping_found mapping;
	uint64_t name;	 /* id of the path of the file; 0: not known */
	bool is_awaited; /* the file of the mapping is not known yet */
};

/*
 * The mappings that the unwinder has under a generation number (see struct unwind_process). Several
 * processes may have versions with this number: at a fork, a BPF program gives the child the
 * parent's mappings. A child's stack may arrive before the record of its fork, which comes through
 * the ring of another probe, so the mappings are also found without the child's own version.
 */
struct published_maps {
	UT_hash_handle hh; /* links the entry into the hash table process_table.published */
	uint64_t id;
	struct process_maps *maps; /* not owned: each version that counts in n_versions owns them */
	unsigned int n_versions;
};

/*
 * The mappings that were used to walk one or more stacks: those that the unwinder had for the
 * process at the time of the walks, and those that the walks found in addition.
 */
struct maps_version {
	struct maps_version *next; /* next older version */
	/* id of this version; record_stack.mappings of a stack is the id of its version */
	uint64_t id;
	/*
	 * true: the unwinder had mappings of the process, which are those of this version; false:
	 * only stack walks found mappings
	 */
	bool is_published;
	struct process_maps *maps; /* the unwinder's mappings; NULL: none, or dropped since */
	struct published_maps *published; /* the entry of `maps`; NULL: they have none */
	int64_t made_ns;
	struct process_maps *walk_maps; /* those mappings of walked[] whose file is known; NULL:
					   none */
	size_t n_walked;
	/*
	 * array of the n_walked mappings that walks found, with room for UNWIND_FOUND_MAX; NULL:
	 * walks have found none, as for most versions
	 */
	struct walk_mapping *walked;
};

static struct maps_version *version_find(const struct process *process, uint64_t id)
{
	struct maps_version *version = process->versions;

	while (version && version->id != id)
		version = version->next;
	return version;
}

/* Returns the mappings that the unwinder has under this number; NULL if no process has them. */
static struct process_maps *published_find(const struct process_table *table, uint64_t id)
{
	struct published_maps *published;

	HASH_FIND(hh, table->published, &id, sizeof(id), published);
	return published ? published->maps : NULL;
}

/* Returns the entry of these mappings; adds it if there is none. NULL when out of memory. */
static struct published_maps *published_get(struct process_table *table, uint64_t id,
					    struct process_maps *maps)
{
	struct published_maps *published;

	HASH_FIND(hh, table->published, &id, sizeof(id), published);
	if (!published) {
		published = calloc(1, sizeof(*published));
		if (!published)
			return NULL;
		published->id = id;
		published->maps = maps;
		HASH_ADD(hh, table->published, id, sizeof(id), published);
		if (!HASH_HAS(published)) {
			free(published);
			return NULL;
		}
	}
	published->n_versions++;
	return published;
}

static void published_put(struct process_table *table, struct published_maps *published)
{
	if (!published || --published->n_versions)
		return;
	HASH_DELETE(hh, table->published, published);
	free(published);
}

static void version_free(struct process *process, struct maps_version *version)
{
	published_put(process->table, version->published);
	process_maps_unref(version->maps);
	process_maps_unref(version->walk_maps);
	free(version->walked);
	free(version);
}

void maps_history_free(struct process *process)
{
	while (process->versions) {
		struct maps_version *version = process->versions;

		process->versions = version->next;
		version_free(process, version);
	}
}

/*
 * Drops the oldest versions of the process until the rest is within the limits of number, size and
 * age.
 */
static void versions_drop(struct process *process)
{
	int64_t oldest_ns = clock_ns(CLOCK_MONOTONIC) - VERSIONS_KEEP_NS;
	struct maps_version **p = &process->versions;
	const struct process_maps *newer = NULL;
	size_t bytes = 0;

	for (size_t i = 0; *p; i++, p = &(*p)->next) {
		if (newer && (*p)->maps && (*p)->maps != newer)
			bytes += process_maps_bytes((*p)->maps);
		if ((*p)->walk_maps)
			bytes += process_maps_bytes((*p)->walk_maps);
		newer = (*p)->maps ? (*p)->maps : newer;
		if (i && (bytes > VERSIONS_BYTES || i >= VERSIONS_MAX ||
			  (i >= VERSIONS_FEW && (*p)->made_ns <= oldest_ns)))
			break;
	}
	while (*p) {
		struct maps_version *version = *p;

		*p = version->next;
		version_free(process, version);
	}
}

static struct maps_version *version_add(struct process *process, uint64_t id, bool is_published,
					struct process_maps *maps)
{
	struct maps_version *version = calloc(1, sizeof(*version));

	if (!version)
		return NULL;
	*version = (struct maps_version){
		.next = process->versions,
		.id = id,
		.is_published = is_published,
		.maps = maps ? process_maps_ref(maps) : NULL,
		.made_ns = clock_ns(CLOCK_MONOTONIC),
	};
	if (maps && !(id & MAPPINGS_FOUND))
		version->published = published_get(process->table, id, maps);
	process_unpark(process);
	process->versions = version;
	versions_drop(process);
	return version;
}

void maps_history_add(struct process *process)
{
	struct address_space *space = process_maps_address_space(process->maps);

	if (space && !version_find(process, address_space_generation(space)))
		version_add(process, address_space_generation(space), true, process->maps);
}

void maps_history_inherit(struct process *process, const struct process *parent)
{
	const struct maps_version *versions[VERSIONS_FORKED], *version = parent->versions;
	size_t n = 0;

	for (; version && n < ARRAY_SIZE(versions); version = version->next)
		if (!(version->id & MAPPINGS_FOUND))
			versions[n++] = version;
	while (n--)
		version_add(process, versions[n]->id, true, versions[n]->maps);
}

/*
 * Returns the entry of the mapping in version->walked; adds the entry if there is none. NULL when
 * out of memory or when the array is full.
 */
static struct walk_mapping *walk_mapping_get(struct maps_version *version,
					     const struct unwind_mapping_found *mapping,
					     uint64_t name)
{
	struct walk_mapping *walked;

	for (size_t i = 0; i < version->n_walked; i++)
		if (version->walked[i].mapping.start == mapping->start)
			return &version->walked[i];
	if (!version->walked)
		version->walked = calloc(UNWIND_FOUND_MAX, sizeof(*version->walked));
	if (!version->walked || version->n_walked == UNWIND_FOUND_MAX)
		return NULL;
	walked = &version->walked[version->n_walked++];
	*walked = (struct walk_mapping){
		.mapping = *mapping,
		.name = name,
		.is_awaited = true,
	};
	return walked;
}

/*
 * Adds the mapping to version->walk_maps if its file is known, and also if it has no file but holds
 * code made at run time. `module` is the module of the file. If `module` is NULL, the size in the
 * mapping's key decides: 0 means that there is no file; any other size means that the file is not
 * known yet. The mapping is then added only if takes_path is true and the path of the file is
 * known.
 */
static void walk_mapping_set(struct process *process, struct maps_version *version,
			     struct walk_mapping *walked, struct module *module, bool takes_path)
{
	const char *path = process_name_find(process->table, walked->name);
	bool is_unknown = !module && walked->mapping.key.size;

	if (is_unknown && !(takes_path && path))
		return;
	if (!process_maps_add(process->table->registry, &version->walk_maps, &walked->mapping,
			      module, path))
		walked->is_awaited = is_unknown;
}

void maps_history_note(struct process *process, const struct record_mapping *record,
		       struct module *module)
{
	struct maps_version *version = version_find(process, record->mappings);
	struct walk_mapping *walked;

	if (!version)
		version = version_add(process, record->mappings, record->generation != 0,
				      published_find(process->table, record->generation));
	walked = version ? walk_mapping_get(version, &record->found, record->name) : NULL;
	if (walked && walked->is_awaited)
		walk_mapping_set(process, version, walked, module, false);
}

size_t maps_history_awaited(const struct process *process, uint64_t id,
			    struct unwind_code_key keys_out[static UNWIND_FOUND_MAX])
{
	const struct maps_version *version = version_find(process, id);
	size_t n = 0;

	for (size_t i = 0; version && i < version->n_walked; i++)
		if (version->walked[i].is_awaited)
			keys_out[n++] = version->walked[i].mapping.key;
	return n;
}

void maps_history_settle(struct process *process, uint64_t id)
{
	struct maps_version *version = version_find(process, id);

	for (size_t i = 0; version && i < version->n_walked; i++) {
		struct walk_mapping *walked = &version->walked[i];
		struct module *module = NULL;

		if (!walked->is_awaited)
			continue;
		module = module_find_code(process->table->registry, &walked->mapping.key);
		walk_mapping_set(process, version, walked, module, true);
		module_unref(module);
	}
}

struct process_maps *maps_history_find(const struct process *process, uint64_t id, uint64_t at,
				       bool *is_final_out)
{
	const struct maps_version *version = version_find(process, id);

	/*
	 * If the version of the mappings was dropped, the address must not be looked up in another
	 * version: there, another file may be mapped at this address.
	 */
	*is_final_out = !version || version->is_published;
	for (size_t i = 0; version && i < version->n_walked; i++) {
		const struct unwind_mapping_found *mapping = &version->walked[i].mapping;

		if (at < mapping->start || at >= mapping->end)
			continue;
		*is_final_out = true;
		return version->walk_maps;
	}
	return version ? version->maps : published_find(process->table, id);
}

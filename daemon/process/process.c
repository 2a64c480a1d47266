/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/process/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/base.h"
#include "daemon/host/procfs.h"
#include "daemon/process/internal.h"
#include "daemon/unwind/unwind.h"

/*
 * Returns the hash key of a process's entries, process_entries.key. For an entry with pid 0, the
 * key has bit 63 set, which no pid has.
 */
static uint64_t entries_key(const struct process_id *id)
{
	return id->pid ? (uint32_t)id->pid : id->start_boot_ns | UINT64_C(1) << 63;
}

static struct process_entries *entries_find(const struct process_table *table,
					    const struct process_id *id)
{
	uint64_t key = entries_key(id);
	struct process_entries *entries;

	HASH_FIND(hh, table->entries, &key, sizeof(key), entries);
	return entries;
}

struct process *process_entries(const struct process_table *table, const struct process_id *id)
{
	struct process_entries *entries = entries_find(table, id);

	return entries ? entries->first : NULL;
}

/* Puts a process behind all newer ones. One that is older than all is added without a search. */
static void entries_insert(struct process_entries *entries, struct process *process)
{
	struct process *at = entries->first;

	if (at && process_is_newer(at->prev, process))
		at = NULL;
	while (at && process_is_newer(at, process))
		at = at->next;
	DL_PREPEND_ELEM(entries->first, at, process);
}

void process_relink(struct process *process)
{
	struct process_entries *entries = entries_find(process->table, &process->id);

	DL_DELETE(entries->first, process);
	entries_insert(entries, process);
}

int process_link(struct process *process)
{
	struct process_table *table = process->table;
	struct process_entries *entries = entries_find(table, &process->id);

	if (!entries) {
		entries = calloc(1, sizeof(*entries));
		if (!entries)
			return -ENOMEM;
		entries->key = entries_key(&process->id);
		HASH_ADD(hh, table->entries, key, sizeof(entries->key), entries);
		if (!HASH_HAS(entries)) {
			free(entries);
			return -ENOMEM;
		}
	}
	DL_PREPEND(entries->first, process);
	swept_add(process);
	table->n_processes++;
	return 0;
}

static void unlink_process(struct process *process)
{
	struct process_table *table = process->table;
	struct process_entries *entries = entries_find(table, &process->id);

	DL_DELETE(entries->first, process);
	if (!entries->first) {
		HASH_DELETE(hh, table->entries, entries);
		free(entries);
	}
	process_unpark(process);
	swept_remove(process);
	table->n_processes--;
}

/*
 * True if the process started at this time. A start time that was read from /proc is exact only to
 * a clock tick; in this case, it is enough that both times are in the same tick.
 */
bool process_is_same_start(const struct process *process, uint64_t start_boot_ns)
{
	if (process->id.start_boot_ns == start_boot_ns)
		return true;
	return !process->is_gen_known &&
	       procfs_ticks(process->id.start_boot_ns) == procfs_ticks(start_boot_ns);
}

/* True if both are programs of one process. */
static bool is_same_process(const struct process *a, const struct process *b)
{
	return process_is_same_start(a, b->id.start_boot_ns) ||
	       process_is_same_start(b, a->id.start_boot_ns);
}

bool process_is_newer(const struct process *a, const struct process *b)
{
	if (is_same_process(a, b))
		return a->is_gen_known && (!b->is_gen_known || a->id.exec_gen > b->id.exec_gen);
	return a->id.start_boot_ns > b->id.start_boot_ns;
}

bool process_is_newest(const struct process *process)
{
	return process_entries(process->table, &process->id) == process;
}

struct unwind_owner process_unwind_owner(const struct process *process)
{
	return (struct unwind_owner){
		.pid = (uint32_t)process->id.pid,
		.exec_gen = process->id.exec_gen,
		.start_boot_ns = process->id.start_boot_ns,
		.is_exact = process->is_gen_known,
	};
}

void process_publish(struct process *process)
{
	struct address_space *space = process_maps_address_space(process->maps);
	struct unwind_owner owner = process_unwind_owner(process);

	if (!space || process->has_exited || process->is_kernel || !process_is_newest(process))
		return;
	maps_history_add(process);
	if (process->copied_generation != address_space_generation(space)) {
		process->copied_generation = 0;
		unwind_process_set(space, &owner);
		process->shown_ns = clock_ns(CLOCK_BOOTTIME);
		process->has_put = true;
	}
	process_maps_want_rows(process->maps);
	process_table_note_files(process->table);
}

/*
 * Sets is_replaced after an entry was marked as exited: in this one if the process goes on with a
 * later program, else in all of the process, because it has ended.
 */
static void set_replaced(struct process *process)
{
	struct process *first = process_entries(process->table, &process->id);

	process->is_replaced = !first->has_exited && is_same_process(first, process);
	if (process->is_replaced)
		return;
	for (struct process *p = process->next; p && is_same_process(p, process); p = p->next)
		p->is_replaced = false;
}

void process_set_exited(struct process *process)
{
	if (process->has_exited)
		return;
	process->has_exited = true;
	process->exited_ns = clock_ns(CLOCK_MONOTONIC);
	process->table->put_off += process->is_missed;
	/* The strings are not counted, because many processes share them. */
	process->dead_bytes = sizeof(*process) + sizeof(struct process_entries);
	process->table->dead_bytes += process->dead_bytes;
	set_replaced(process);
}

void process_mark_exited(struct process *process)
{
	struct unwind *unwind = module_registry_unwind(process->table->registry);
	struct unwind_owner owner = process_unwind_owner(process);

	if (process->has_exited)
		return;
	process_set_exited(process);
	/*
	 * The entry of the process in the unwinder's map: if a BPF program has added it, a BPF
	 * program removes it at the exit.
	 */
	if (unwind && process->has_put)
		unwind_process_drop(unwind, &owner);
	if (!process->shown_maps)
		return;
	process_maps_drop_live(process->shown_maps);
	process->shown_maps = process_maps_unref(process->shown_maps);
	process_table_note_files(process->table);
}

void process_show(struct process *process)
{
	struct process_maps *old = process->shown_maps;

	if (!process->maps || process->maps == old)
		return;
	/* Add the new maps before dropping the old ones, so that files in both are not closed. */
	process_maps_add_live(process->maps);
	if (process->has_exited) {
		process_maps_drop_live(process->maps);
		process_table_note_files(process->table);
		return;
	}
	process->shown_maps = process_maps_ref(process->maps);
	process_publish(process);
	if (old)
		process_maps_drop_live(old);
	process_maps_unref(old);
}

/* Shows the processes in table.unshown[] that still run. Called with table.lock held. */
static void show_all(struct process_table *table)
{
	for (size_t i = 0; i < table->n_unshown; i++) {
		struct process *process = table->unshown[i];

		process->is_unshown = false;
		process_drop_ref(process);
		if (!process->has_exited)
			process_show(process);
	}
	table->n_unshown = 0;
}

void process_show_later(struct process *process)
{
	struct process_table *table = process->table;

	if (process->is_unshown)
		return;
	if (table->n_unshown == UNSHOWN_MAX)
		show_all(table);
	process->is_unshown = true;
	process->refs++;
	table->unshown[table->n_unshown++] = process;
}

void process_table_show(struct process_table *table)
{
	pthread_mutex_lock(&table->lock);
	show_all(table);
	process_table_unlock(table);
}

void process_set_maps(struct process *process, struct process_maps *maps)
{
	struct process_maps *old = process->maps;

	process->maps = maps;
	process_unpark(process);
	process_show(process);
	process_maps_unref(old);
}

void process_forget_code(struct process *process)
{
	process->maps = process_maps_unref(process->maps);
	maps_history_free(process);
	free(TAKE(process->pending));
	process->perf = perf_map_unref(process->perf);
}

void process_remove(struct process *process)
{
	process_mark_exited(process);
	unlink_process(process);
	process_forget_code(process);
	process->table->dead_bytes -= process->dead_bytes;
	process_set_text(process, &process->exe, NULL);
	process_set_text(process, &process->cgroup, NULL);
	process_drop_old_texts(process);
	process_old_comms_free(&process->old_comms);
	free(process);
}

struct process *process_ref(struct process *process)
{
	pthread_mutex_lock(&process->table->lock);
	process->refs++;
	pthread_mutex_unlock(&process->table->lock);
	return process;
}

struct process *process_unref(struct process *process)
{
	struct process_held held = { 0 };
	struct process_table *table;

	if (!process)
		return NULL;
	table = process->table;
	pthread_mutex_lock(&table->lock);
	process_drop_ref(process);
	if (!process->refs) {
		process_drop_old_texts(process);
		held = process_held_take(process);
	}
	pthread_mutex_unlock(&table->lock);
	process_held_put(table, &held);
	return NULL;
}

bool process_table_comm(struct process_table *table, int32_t pid, int64_t start_real_ns,
			int64_t end_real_ns, char comm[static 16])
{
	const int64_t real_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	const struct process_id id = { .pid = pid };
	const struct process *found = NULL;
	bool is_other = false; /* several had the pid */

	if (!table)
		return false;
	pthread_mutex_lock(&table->lock);
	for (struct process *p = process_entries(table, &id); p; p = p->next) {
		if (p->start_real_ns > end_real_ns ||
		    (p->has_exited && p->exited_ns + real_ns < start_real_ns))
			continue;
		is_other |= found && !process_is_same_start(p, found->id.start_boot_ns);
		/* The newest one comes first; an exec adds one. */
		if (!found || found->added_ns + real_ns > end_real_ns)
			found = p;
	}
	if (found && !is_other)
		memcpy(comm, process_comm_at(found, end_real_ns - real_ns), 16);
	pthread_mutex_unlock(&table->lock);
	return found && !is_other;
}

bool process_has_exited(struct process *process)
{
	bool has_exited;

	pthread_mutex_lock(&process->table->lock);
	has_exited = process->has_exited && !process->is_folded;
	pthread_mutex_unlock(&process->table->lock);
	return has_exited;
}

void process_info(struct process *process, struct process_info *out)
{
	process_info_at(process, INT64_MAX, out);
}

void process_info_at(struct process *process, int64_t at_ns, struct process_info *out)
{
	pthread_mutex_lock(&process->table->lock);
	*out = (struct process_info){
		.id = process->id,
		.start_real_ns = process->start_real_ns,
		.is_kernel = process->is_kernel,
		.has_exited = process->has_exited && !process->is_folded && !process->is_replaced,
		.is_replaced = process->is_replaced,
		.is_folded = process->is_folded,
		.exe = process->exe,
		.cgroup = process_cgroup_at(process, at_ns),
	};
	memcpy(out->comm, process_comm_at(process, at_ns), sizeof(out->comm));
	pthread_mutex_unlock(&process->table->lock);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/host/procfs.h"
#include "daemon/module/module.h"
#include "daemon/process/internal.h"

int process_table_new_stored(struct process_table **out)
{
	struct process_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	/*
	 * A table of processes read from disk has no modules, but the functions of all tables need
	 * a registry.
	 */
	table->registry = module_registry_new(0);
	if (!table->registry) {
		free(table);
		return -ENOMEM;
	}
	pthread_mutex_init(&table->lock, NULL);
	pthread_cond_init(&table->wake, NULL);
	pthread_cond_init(&table->files_wake, NULL);
	pthread_cond_init(&table->has_read, NULL);
	*out = table;
	return 0;
}

/* True if this same process is still running; false if another one has its pid now. */
static bool is_alive(const struct process_id *id)
{
	struct procfs_stat stat;
	int fd = procfs_open(id->pid, &stat);

	if (fd < 0)
		return false;
	close(fd);
	return stat.start_ticks == procfs_ticks(id->start_boot_ns);
}

struct process *process_table_add_stored(struct process_table *table,
					 const struct process_info *info)
{
	struct process *process;

	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->table = table;
	process->id = info->id;
	process->is_gen_known = true;
	process->is_kernel = info->is_kernel;
	process->is_folded = info->is_folded;
	process->is_unchecked = !info->is_folded;
	process->start_real_ns = info->start_real_ns;
	process->refs = 1;
	memcpy(process->comm, info->comm, sizeof(process->comm));
	if (process_link(process)) {
		free(process);
		return NULL;
	}
	if (info->exe)
		process_set_text(process, &process->exe, info->exe);
	if (info->cgroup)
		process_set_text(process, &process->cgroup, info->cgroup);
	return process;
}

void process_check_exited(struct process *process)
{
	bool is_unchecked;

	pthread_mutex_lock(&process->table->lock);
	is_unchecked = process->is_unchecked;
	process->is_unchecked = false;
	pthread_mutex_unlock(&process->table->lock);
	if (!is_unchecked || is_alive(&process->id))
		return;
	pthread_mutex_lock(&process->table->lock);
	process->has_exited = true;
	pthread_mutex_unlock(&process->table->lock);
}

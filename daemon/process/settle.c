/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/host/procfs.h"
#include "daemon/process/internal.h"

/*
 * Returns 0 if stack walks find the mappings of the process; -ENOENT if there is no room for them,
 * or -ESTALE. If they do not find them, passes them on once more: a BPF program that forks a
 * process copies nothing while its parent has no entry.
 */
static int shown_check(struct process *process)
{
	struct address_space *space = process_maps_address_space(process->maps);
	struct unwind_owner owner = process_unwind_owner(process);
	int r;

	if (!space)
		return -ENOENT;
	if (process->shown_maps != process->maps)
		return -ESTALE;
	r = unwind_process_check(space, &owner);
	if (!r)
		return 0;
	process->copied_generation = 0;
	process_publish(process);
	return unwind_process_check(space, &owner);
}

/* Sets what is known of the files of a process whose mappings were read. */
static void files_settle(struct process *process, struct process_settled *out)
{
	int r = shown_check(process);

	process_maps_expect_rows(process->maps);
	process_table_note_files(process->table);
	process_maps_files(process->maps, &out->files);
	out->is_full = r == -ENOENT;
	out->is_shown = !r;
}

/* `begun` is the number of reads of the process that had begun before this question. */
static void settle(struct process *process, uint64_t begun, struct process_settled *out)
{
	*out = (struct process_settled){
		.is_kernel = process->is_kernel,
		.is_hanging = process->is_hanging,
		.is_read = process->read_taken > begun && process->maps,
	};
	memcpy(out->comm, process->comm, sizeof(out->comm));
	if (out->is_read && !out->is_kernel)
		files_settle(process, out);
	out->is_settled = out->is_kernel ||
			  (out->is_read && !out->files.awaited && (out->is_shown || out->is_full));
}

int process_table_settle(struct process_table *table, int32_t pid, struct process_settled *out)
{
	struct process *process;
	struct procfs_stat stat;
	uint64_t begun = 0;
	int fd = procfs_open(pid, &stat), r = 0;

	if (fd < 0)
		return -ESRCH;
	close(fd);
	pthread_mutex_lock(&table->lock);
	process = process_find_or_add_scanned(table, pid, stat.start_ticks);
	if (process) {
		process->refs++;
		begun = process->reads_begun;
	}
	pthread_mutex_unlock(&table->lock);
	if (!process)
		return -ENOMEM;
	process_read_soon(process);
	pthread_mutex_lock(&table->lock);
	if (process->has_exited)
		r = -ESRCH;
	else
		settle(process, begun, out);
	process_table_unlock(table);
	process_unref(process);
	return r;
}

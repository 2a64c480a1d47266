/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/host/procfs.h"
#include "daemon/process/internal.h"

static int scan_one(struct process_table *table, int32_t pid)
{
	struct process *process;
	struct procfs_stat stat;
	int fd = procfs_open(pid, &stat);

	if (fd < 0)
		return 0; /* the process has exited since /proc was listed */
	pthread_mutex_lock(&table->lock);
	process = process_find_or_add_scanned(table, pid, stat.start_ticks);
	if (process)
		process->refs++;
	process_table_unlock(table);
	close(fd);
	if (!process)
		return -ENOMEM;
	process_read_soon(process);
	process_unref(process);
	return 0;
}

int process_table_scan(struct process_table *table)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int r = 0;

	if (!proc)
		return -errno;
	while (r == 0 && (entry = readdir(proc))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (pid > 0 && pid <= INT32_MAX && !*end)
			r = scan_one(table, (int32_t)pid);
	}
	closedir(proc);
	return r;
}

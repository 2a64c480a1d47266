/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/host/procfs.h"
#include "daemon/process/internal.h"

/* How many processes the thread `reader` may have before it: each wait for it takes a switch. */
enum { SCAN_AHEAD = 64 };

static int scan_one(struct process_table *table, int32_t pid)
{
	struct process *process;
	struct procfs_stat stat;
	int fd = procfs_open(pid, &stat);

	if (fd < 0)
		return 0; /* the process has exited since /proc was listed */
	close(fd);
	process_reader_await(table, SCAN_AHEAD);
	pthread_mutex_lock(&table->lock);
	process = process_find_or_add_scanned(table, pid, stat.start_ticks);
	if (process)
		read_queue_push(process, clock_ns(CLOCK_MONOTONIC), false);
	process_table_unlock(table);
	return process ? 0 : -ENOMEM;
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
	process_reader_await(table, 0);
	return r;
}

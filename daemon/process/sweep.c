/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "common/base.h"
#include "daemon/host/procfs.h"
#include "daemon/process/internal.h"

#define SYMBOLS_IDLE_NS	 (120 * NS_PER_S)
#define SWEEP_CHECKS_MAX 256 /* number of processes that one sweep looks for in /proc, at most */

/* True unless /proc shows that the process has exited. */
static bool is_in_proc(const struct process_id *id)
{
	struct procfs_stat stat;
	int fd = procfs_open(id->pid, &stat);

	if (fd < 0)
		return fd != -ESRCH;
	close(fd);
	return stat.start_ticks == procfs_ticks(id->start_boot_ns);
}

static void sweep_exited(struct process *process, const struct process_sweep *sweep)
{
	if (!process->refs && process->exited_ns < sweep->dead_ns &&
	    process->seen_ns < sweep->dead_ns)
		process_remove(process);
	else if (process->exited_ns < sweep->named_ns)
		process_forget_code(process);
}

/*
 * Removes processes that have exited, or drops their mappings. Stores in suspects the processes
 * that were not seen for a long time: the report of their exit may have been lost. Returns the
 * number of suspects; the caller owns a reference to each.
 */
static size_t sweep_table(struct process_table *table, const struct process_sweep *sweep,
			  struct process **suspects)
{
	struct process_images *images, *next_images;
	size_t n = 0;

	HASH_ITER (hh, table->images, images, next_images) {
		struct process *next;

		for (struct process *p = images->first; p; p = next) {
			next = p->next;
			if (p->has_exited) {
				sweep_exited(p, sweep);
			} else if (!p->refs && p->seen_ns < sweep->lost_ns &&
				   n < SWEEP_CHECKS_MAX) {
				p->refs++;
				suspects[n++] = p;
			}
		}
	}
	return n;
}

void process_table_sweep(struct process_table *table, const struct process_sweep *sweep)
{
	struct process *suspects[SWEEP_CHECKS_MAX];
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	size_t n;

	module_registry_drop_idle(table->registry, SYMBOLS_IDLE_NS);
	pthread_mutex_lock(&table->lock);
	n = sweep_table(table, sweep, suspects);
	pthread_mutex_unlock(&table->lock);
	for (size_t i = 0; i < n; i++) {
		bool is_there = is_in_proc(&suspects[i]->id);

		pthread_mutex_lock(&table->lock);
		suspects[i]->refs--;
		suspects[i]->seen_ns = now; /* the next sweep does not look for this process */
		if (!is_there)
			process_mark_exited(suspects[i]);
		pthread_mutex_unlock(&table->lock);
	}
}

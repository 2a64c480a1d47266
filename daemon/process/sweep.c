/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/host/procfs.h"
#include "daemon/process/internal.h"

#define SYMBOLS_IDLE_NS	 (120 * NS_PER_S)
#define SWEEP_CHECKS_MAX 256 /* number of processes that one sweep looks for in /proc, at most */
#define SWEEP_AT_ONCE	 512 /* number after which a sweep releases the lock for a moment */
#define SWEEP_PAUSE_US	 200

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

/*
 * Removes a process that has exited, or drops its mappings. Returns its memory if windows refer to
 * it and it is not parked.
 */
static size_t sweep_exited(struct process *process, const struct process_sweep *sweep)
{
	if (!process->refs && process->exited_ns < sweep->dead_ns &&
	    process->seen_ns < sweep->dead_ns) {
		process_remove(process);
		return 0;
	}
	/* Stacks that wait for their window may refer to a process that has exited just now. */
	if (process->exited_ns >= sweep->named_ns)
		return process->refs && process->exited_ns < sweep->dead_ns ? process->dead_bytes
									    : 0;
	process_forget_code(process);
	if (process->refs)
		process_park(process);
	return 0;
}

/*
 * Sweeps all processes that are not parked, and returns the number of suspects. A process that was
 * not seen for a long time is one: the report of its exit may have been lost. Stores references to
 * them in suspects[]. Releases the table's lock after every SWEEP_AT_ONCE processes and sleeps a
 * little: on a host with many more runnable threads than CPUs, a sweep of 15,000 processes held the
 * lock for 300 ms and more, and windows could not end meanwhile.
 */
static size_t sweep_table(struct process_table *table, const struct process_sweep *sweep,
			  struct process **suspects)
{
	size_t n = 0, bytes = 0, i;

	pthread_mutex_lock(&table->lock);
	table->sweep_next = table->swept;
	while (table->sweep_next) {
		for (i = 0; i < SWEEP_AT_ONCE && table->sweep_next; i++) {
			struct process *process = table->sweep_next;

			table->sweep_next = process->swept_next;
			if (process->has_exited) {
				bytes += sweep_exited(process, sweep);
			} else if (!process->refs && process->seen_ns < sweep->lost_ns &&
				   n < SWEEP_CHECKS_MAX) {
				process->refs++;
				suspects[n++] = process;
			}
		}
		pthread_mutex_unlock(&table->lock);
		usleep(SWEEP_PAUSE_US);
		pthread_mutex_lock(&table->lock);
	}
	table->unparked_bytes = bytes;
	pthread_mutex_unlock(&table->lock);
	return n;
}

void process_table_sweep(struct process_table *table, const struct process_sweep *sweep)
{
	struct process *suspects[SWEEP_CHECKS_MAX];
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	size_t n;

	pthread_mutex_lock(&table->lock);
	process_reader_replace(table);
	pthread_mutex_unlock(&table->lock);
	module_registry_drop_idle(table->registry, SYMBOLS_IDLE_NS);
	n = sweep_table(table, sweep, suspects);
	for (size_t i = 0; i < n; i++) {
		bool is_there = is_in_proc(&suspects[i]->id);

		pthread_mutex_lock(&table->lock);
		process_drop_ref(suspects[i]);
		suspects[i]->seen_ns = now; /* the next sweep does not look for this process */
		if (!is_there)
			process_mark_exited(suspects[i]);
		process_table_unlock(table);
	}
}

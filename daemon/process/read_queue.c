/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/base.h"
#include "daemon/process/internal.h"

/*
 * While a process has addresses in no known mapping, its mappings are read again: 100 ms after the
 * last time, then after 200 ms, and so on, doubling up to 25.6 s. After 5 s without such an
 * address, the delay is 100 ms again.
 */
#define READ_AGAIN_NS	  (100 * NS_PER_MS)
#define READ_ATTEMPTS_MAX 8
#define READ_QUIET_NS	  (5 * NS_PER_S)

bool process_should_read(struct process *process, int64_t now)
{
	if (process->has_exited || process->is_kernel || !process_is_newest(process))
		return false;
	if (now - process->missed_ns > READ_QUIET_NS) {
		process->attempts = 0;
		process->next_read_ns = 0;
	}
	process->missed_ns = now;
	if (now < process->next_read_ns)
		return false;
	process->next_read_ns = now + (READ_AGAIN_NS << process->attempts);
	if (process->attempts < READ_ATTEMPTS_MAX)
		process->attempts++;
	return true;
}

void read_queue_add(struct process *process, int64_t delay_ns, bool is_repeat)
{
	struct process_table *table = process->table;

	if ((process->has_exited && !process->pending) || process->is_kernel)
		return;
	if (table->n_queued == READ_QUEUE_MAX) {
		table->queue_full++;
		return;
	}
	process->refs++;
	table->queue[table->n_queued] = (struct read_request){
		.process = process,
		.due_ns = clock_ns(CLOCK_MONOTONIC) + delay_ns,
		.is_repeat = is_repeat,
	};
	process_table_note_request(table, table->queue[table->n_queued++].due_ns);
}

size_t read_queue_first(const struct process_table *table)
{
	size_t first = 0;

	for (size_t i = 1; i < table->n_queued; i++) {
		if (table->queue[i].due_ns < table->queue[first].due_ns)
			first = i;
	}
	return first;
}

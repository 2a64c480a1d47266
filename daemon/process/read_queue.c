/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

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

/*
 * read_queue_add_later() causes a process to be read when it has this age: nine of ten short-lived
 * processes have exited by then. The reader thread is woken for many of them at once, at most every
 * LATER_BATCH_NS.
 */
#define LATER_NS       (60 * NS_PER_MS)
#define LATER_BATCH_NS (40 * NS_PER_MS)

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

bool process_is_put_off(const struct process *process)
{
	int64_t until_ns;

	if (!process->table->put_off_ns)
		return false;
	until_ns = process->has_exited ? process->exited_ns : clock_ns(CLOCK_MONOTONIC);
	return until_ns - process->added_ns < process->table->put_off_ns;
}

/* Adds the process to table.later[]. False if there is no room. */
static bool later_add(struct process *process, int64_t due_ns)
{
	struct process_table *table = process->table;
	size_t last = (table->first_later + table->n_later) % READ_LATER_MAX;

	if (table->n_later == READ_LATER_MAX)
		return false;
	process->refs++;
	table->later[last] = (struct read_later){ .process = process, .due_ns = due_ns };
	if (!table->n_later++)
		process_table_note_request(table, read_queue_later_ns(table));
	return true;
}

void process_note_put_off(struct process *process)
{
	if (process->is_missed)
		return;
	process->is_missed = true;
	process->table->put_off += process->has_exited;
}

/* Queues the process once, to be read when it is old enough. */
static void put_off(struct process *process)
{
	struct process_table *table = process->table;

	if (process->is_put_off)
		return;
	process->is_put_off = later_add(process, process->added_ns + table->put_off_ns);
	table->queue_full += !process->is_put_off;
}

bool read_queue_push(struct process *process, int64_t due_ns, bool is_repeat)
{
	struct process_table *table = process->table;

	if (table->n_queued == READ_QUEUE_MAX) {
		table->queue_full++;
		return false;
	}
	process->refs++;
	table->queue[table->n_queued++] = (struct read_request){
		.process = process,
		.due_ns = due_ns,
		.is_repeat = is_repeat,
	};
	process_table_note_request(table, due_ns);
	return true;
}

void read_queue_add(struct process *process, int64_t delay_ns, bool is_repeat)
{
	if ((process->has_exited && !process->pending) || process->is_kernel)
		return;
	if (process_is_put_off(process)) {
		process_note_put_off(process);
		put_off(process);
		return;
	}
	read_queue_push(process, clock_ns(CLOCK_MONOTONIC) + delay_ns, is_repeat);
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

void read_queue_add_later(struct process *process)
{
	/*
	 * If there is no room, the process is read when walks have found its mappings. Nothing has
	 * to be read from it yet, so a process that is put off here, and exits, lacks nothing.
	 */
	if (process_is_put_off(process))
		put_off(process);
	else
		later_add(process, clock_ns(CLOCK_MONOTONIC) + LATER_NS);
}

/* Ends the time for which a process was put off: it is read if it has not exited meanwhile. */
static void put_off_end(struct process *process)
{
	process->is_put_off = false;
	if (process->has_exited) {
		free(TAKE(process->pending));
		return;
	}
	process->is_missed = false;
	read_queue_add(process, 0, false);
}

void read_queue_move_due(struct process_table *table)
{
	int64_t now = table->n_later ? clock_ns(CLOCK_MONOTONIC) : 0;

	while (table->n_later && table->later[table->first_later].due_ns <= now) {
		struct process *process = table->later[table->first_later].process;

		table->first_later = (table->first_later + 1) % READ_LATER_MAX;
		table->n_later--;
		if (process->is_put_off)
			put_off_end(process);
		else if (!process->read_applied)
			read_queue_add(process, 0, true);
		process_drop_ref(process);
	}
}

int64_t read_queue_later_ns(const struct process_table *table)
{
	if (!table->n_later)
		return INT64_MAX;
	return table->later[table->first_later].due_ns + LATER_BATCH_NS;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/process/internal.h"

/*
 * Wakes the threads `reader` and `files` of the process table. The process_table_note_*() functions
 * of this file only note that there is work. process_table_unlock() then signals each thread that
 * sleeps and has work. It does so after it has released the lock, because a thread that is woken
 * earlier would have to wait for the lock. It signals a sleeping thread only once, even if more
 * work is noted before the thread runs.
 */

void process_table_note_files(struct process_table *table)
{
	const struct module_work work = module_registry_work(table->registry);

	table->reader_has_rows |= work.has_small_files;
	table->files_has_work |= work.has_big_files || work.has_unused_files;
}

void process_table_note_request(struct process_table *table, int64_t due_ns)
{
	table->reader_has_request |= due_ns < table->reader_until_ns;
}

void process_table_unlock(struct process_table *table)
{
	bool wakes_reader =
		table->reader_until_ns && (table->reader_has_rows || table->reader_has_request);
	bool wakes_files = table->is_files_asleep && table->files_has_work;

	if (wakes_reader)
		table->reader_until_ns = 0;
	if (wakes_files)
		table->is_files_asleep = false;
	pthread_mutex_unlock(&table->lock);
	if (wakes_reader)
		pthread_cond_signal(&table->wake);
	if (wakes_files)
		pthread_cond_signal(&table->files_wake);
}

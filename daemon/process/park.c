/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <utlist.h>

#include "daemon/process/internal.h"

void swept_add(struct process *process)
{
	DL_APPEND2(process->table->swept, process, swept_prev, swept_next);
}

void swept_remove(struct process *process)
{
	struct process_table *table = process->table;

	if (table->sweep_next == process)
		table->sweep_next = process->swept_next;
	DL_DELETE2(table->swept, process, swept_prev, swept_next);
}

void process_park(struct process *process)
{
	swept_remove(process);
	process->is_parked = true;
	process->table->referred_bytes += process->dead_bytes;
}

void process_unpark(struct process *process)
{
	if (!process->is_parked)
		return;
	process->is_parked = false;
	process->table->referred_bytes -= process->dead_bytes;
	swept_add(process);
}

void process_drop_ref(struct process *process)
{
	if (!--process->refs)
		process_unpark(process);
}

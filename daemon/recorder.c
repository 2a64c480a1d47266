/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/recorder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/log.h"
#include "proto/base.h"

static void boot_id_read(char *id, size_t size)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!f || !fgets(id, (int)size, f))
		snprintf(id, size, "unknown");
	id[strcspn(id, "\n")] = '\0';
}

/* Without it user stacks end at their first frame, and say so. */
static void recorder_unwind(struct recorder *recorder, const struct config *config)
{
	int r = probe_unwind_open(config->unwind_max_memory, &recorder->unwind_maps);

	if (!r)
		r = unwind_new(probe_unwind_memory(recorder->unwind_maps), &recorder->unwind);
	if (r)
		log_err(r, "make room for walks of user stacks");
}

static int recorder_tables(struct recorder *recorder, const struct config *config)
{
	int r = process_table_new(config->symbols_max_memory, &recorder->processes);

	if (!r)
		r = stack_table_new(config->window_max_memory, &recorder->stacks);
	if (!r)
		r = history_new(config->window_keep_ns, config->window_max_memory,
				&recorder->history);
	if (!r)
		r = resolver_new(recorder->stacks, recorder->history, config->idle_functions,
				 &recorder->resolver);
	return r;
}

int recorder_start(const struct config *config, struct recorder *recorder, char *reason,
		   size_t size)
{
	int r;

	recorder->config = config;
	recorder->started_real_ns = clock_ns(CLOCK_REALTIME);
	boot_id_read(recorder->boot_id, sizeof(recorder->boot_id));
	recorder_unwind(recorder, config);
	r = probe_open(config, recorder->broker, recorder->unwind ? recorder->unwind_maps : NULL,
		       &recorder->probe, reason, size);
	if (r)
		return r;
	r = recorder_tables(recorder, config);
	if (!r && recorder->unwind)
		process_table_set_unwind(recorder->processes, recorder->unwind);
	if (!r && probe_is_on(recorder->probe))
		r = drain_start(config, recorder->probe, recorder->processes, recorder->stacks,
				recorder->resolver, recorder->history, &recorder->drain);
	if (!r)
		r = process_table_scan(recorder->processes);
	if (r) {
		snprintf(reason, size, "start recording: %s", strerror(-r));
		recorder_stop(recorder);
	}
	return r;
}

void recorder_stop(struct recorder *recorder)
{
	recorder->drain = drain_stop(recorder->drain);
	recorder->resolver = resolver_free(recorder->resolver);
	recorder->history = history_free(recorder->history);
	recorder->stacks = stack_table_free(recorder->stacks);
	recorder->processes = process_table_free(recorder->processes);
	recorder->unwind = unwind_free(recorder->unwind);
	recorder->probe = probe_close(recorder->probe);
	recorder->unwind_maps = probe_unwind_close(recorder->unwind_maps);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BROKER_PERF_EVENT_H
#define STACKD_DAEMON_BROKER_PERF_EVENT_H

/*
 * The perf events that stackd opens, as plain requests that can cross a socket: checked field by
 * field, then opened. Used by the broker on both sides of that socket. No state; any thread.
 */

#include <stdint.h>

#include "daemon/broker/broker.h"

enum perf_request_kind { PERF_SAMPLING, PERF_KPROBE, PERF_UPROBE };

struct perf_request {
	uint32_t kind;
	uint32_t clock;
	uint32_t cpu;
	uint64_t frequency_hz; /* one of these two */
	uint64_t period;
	uint64_t offset;
	uint32_t is_return;
	uint32_t counter;
	char function[BROKER_MAX_SYMBOL];
	char path[BROKER_MAX_PATH];
};

/* The kernel's numbers of its kprobe and uprobe events; -1 where it has none. */
struct perf_types {
	int kprobe;
	int uprobe;
};

void perf_types_read(struct perf_types *out);

/* 0, or -EINVAL where a field is out of its range or one that the kind does not use is set. */
int perf_request_check(const struct perf_request *request);

/* Opens one event for a request that was checked. Returns 0 or a negative errno. */
int perf_request_open(const struct perf_request *request, const struct perf_types *types,
		      int *fd_out);

#endif

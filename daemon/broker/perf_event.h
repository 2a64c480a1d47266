/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BROKER_PERF_EVENT_H
#define STACKD_DAEMON_BROKER_PERF_EVENT_H

/*
 * The perf events that stackd opens, described by plain structs that can be sent over a socket. A
 * request is checked field by field before it is opened. The daemon and the broker process both use
 * it. No state; any thread.
 */

#include <stdint.h>

#include "daemon/broker/broker.h"

enum perf_request_kind { PERF_SAMPLING, PERF_KPROBE, PERF_UPROBE };

struct perf_request {
	uint32_t kind;
	uint32_t clock;
	uint32_t cpu;
	uint64_t frequency_hz; /* 0 if period is set */
	uint64_t period;       /* 0 if frequency_hz is set */
	uint64_t offset;
	uint32_t is_return;
	uint32_t counter;
	char function[BROKER_MAX_SYMBOL];
	char path[BROKER_MAX_PATH];
};

/* The numbers by which this kernel knows kprobe and uprobe events; -1 if it does not. */
struct perf_types {
	int kprobe;
	int uprobe;
};

void perf_types_read(struct perf_types *out);

/*
 * Returns 0, or -EINVAL if a field is out of its range, or set although the kind does not use it.
 */
int perf_request_check(const struct perf_request *request);

/* Opens the event of a request that was checked. Returns 0 or a negative errno. */
int perf_request_open(const struct perf_request *request, const struct perf_types *types,
		      int *fd_out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BROKER_PERF_EVENT_H
#define STACKD_DAEMON_BROKER_PERF_EVENT_H

/*
 * The perf events that stackd opens, described by a plain struct that can be sent over a socket.
 * Every field of a request is checked before the event is opened. Both the daemon and the broker
 * process use it. No state; any thread.
 */

#include <stdint.h>

#include "daemon/broker/broker.h"

enum perf_request_kind { PERF_SAMPLING, PERF_KPROBE, PERF_UPROBE };

struct perf_request {
	uint32_t kind;
	uint32_t clock;
	uint32_t cpu;
	uint64_t frequency_hz; /* samples per second; 0 if `period` is set */
	uint64_t period;       /* ns or CPU cycles between two samples; 0 if frequency_hz is set */
	uint64_t offset;
	uint32_t is_return;
	uint32_t counter;
	char function[BROKER_MAX_SYMBOL];
	char path[BROKER_MAX_PATH];
};

/*
 * The type numbers of kprobe and uprobe events in this kernel; -1 if the kernel does not have them.
 */
struct perf_types {
	int kprobe;
	int uprobe;
};

void perf_types_read(struct perf_types *out);

/*
 * Checks a request. Returns 0, or -EINVAL: if a field is out of its range, or if a field is set
 * that is not used for this kind of event.
 */
int perf_request_check(const struct perf_request *request);

/* Opens the event that a checked request describes. Returns 0 and *fd_out, or a negative errno. */
int perf_request_open(const struct perf_request *request, const struct perf_types *types,
		      int *fd_out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_RECORDER_H
#define STACKD_DAEMON_SESSION_RECORDER_H

/*
 * The recorder holds all parts of a running daemon except its socket: tables, sessions, and windows
 * in memory and on disk. It starts and stops them in order. Only the daemon's main() and
 * daemon/query/ use it. main() owns it; its members are set before any other thread reads them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/broker/broker.h"
#include "daemon/config/config.h"
#include "daemon/probe/unwind_maps.h"
#include "daemon/process/process.h"
#include "daemon/session/session.h"
#include "daemon/store/history.h"
#include "daemon/store/store.h"
#include "daemon/symbol/source_lines.h"
#include "daemon/unwind/unwind.h"
#include "daemon/window/resolver.h"
#include "daemon/window/stack.h"

/* Counts of events at the last status line, from which the next line computes rates. */
struct recorder_rates {
	int64_t at_ns; /* time of the last line, CLOCK_MONOTONIC; 0: there was none yet */
	uint64_t events[PROBE_KIND_N];
};

struct sweeper;

struct recorder {
	const struct config *config; /* borrowed */
	struct broker *broker;	     /* borrowed; set before the start, may be NULL */
	/* Set before the start. True: records nothing and needs no privilege, only answers queries
	 * from the windows on disk. */
	bool is_serve_only;
	struct unwind_maps *unwind_maps; /* NULL: is_serve_only, or the kernel refused them */
	struct unwind *unwind;
	struct process_table *processes;
	struct stack_table *stacks;
	struct history *history;
	struct store *store; /* NULL: windows are not written to disk */
	struct resolver *resolver;
	struct sessions *sessions;
	struct sweeper *sweeper; /* NULL if is_serve_only */
	struct source_lines_helper *lines;
	struct recorder_rates rates; /* used by the main thread only */
	int64_t started_real_ns;
	char boot_id[40];
};

/*
 * Checks that this process may record on this kernel. Returns 0, or negative errno with one line in
 * reason (size bytes). If is_serve_only, always returns 0.
 */
int recorder_check(const struct recorder *recorder, char *reason, size_t size);

/*
 * Starts all parts of the recorder. Returns 0, or negative errno with one line in reason (size
 * bytes): -EPERM if the kernel refuses BPF tracing altogether. It is no error if the kernel refuses
 * one probe, which is then off.
 */
int recorder_start(const struct config *config, struct recorder *recorder, char *reason,
		   size_t size);

/* Logs, after the start, which probes record by which hook: one line per always-on probe. */
void recorder_log_probes(struct recorder *recorder);

/* Writes a status line for systemd: per probe, the events per second since the last call, and all
 * losses since the start. */
void recorder_status_line(struct recorder *recorder, char *out, size_t size);

/* Returns the bytes of all BPF maps: those of sessions, and those for walks of user stacks. */
uint64_t recorder_map_bytes(struct recorder *recorder);

/* Reads how much memory the tables for walks of user stacks take. False if there are none. */
bool recorder_unwind_stats(struct recorder *recorder, struct unwind_stats *out);

/* Applies the limits in the settings after the settings were read again. */
void recorder_set_limits(struct recorder *recorder);

/* Cuts the open windows and stops everything, in the reverse order of the start. */
void recorder_stop(struct recorder *recorder);

#endif

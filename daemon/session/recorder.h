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

/* Event counts at the time of the last status line. The next status line computes events per second
 * from them. */
struct recorder_rates {
	int64_t at_ns; /* CLOCK_MONOTONIC time of the last status line; 0: none yet */
	uint64_t events[PROBE_KIND_N];
};

struct budget;
struct held_waits;
struct step_waits;
struct parser;
struct sweeper;
struct totals;

/* Counts of what was folded since the start, see daemon/window/fold.h. Any thread may read them. */
struct recorder_folds {
	/* number of folded processes; a process counts once for each window */
	_Atomic uint64_t processes;
	_Atomic uint64_t rows;
	_Atomic uint64_t ns;
	_Atomic uint64_t unlisted;
};

/* Says, for users, that the recorder has is_serve_only set. */
extern const char recorder_serves_only[];

struct recorder {
	const struct config *config; /* borrowed */
	struct broker *broker; /* the privileged helper process; borrowed, set before the start, may
				  be NULL */
	struct parser *parser; /* the processes that parse files; borrowed, set before the start */
	/* Set before recorder_start(). True: records nothing and needs no privilege, only answers
	 * queries from the windows on disk. */
	bool is_serve_only;
	/* NULL if is_serve_only, or if the kernel refused the maps */
	struct unwind_maps *unwind_maps;
	struct unwind *unwind;
	struct process_table *processes;
	struct stack_table *stacks;
	struct history *history;
	struct store *store; /* NULL if windows are not written to disk */
	struct resolver *resolver;
	struct held_waits *held;  /* used on the resolver's thread; NULL if is_serve_only */
	struct step_waits *steps; /* as `held` */
	struct sessions *sessions;
	struct budget *budget;	 /* NULL if is_serve_only */
	struct sweeper *sweeper; /* NULL if is_serve_only */
	struct source_lines_helper *lines;
	struct totals *totals;	     /* sums of all windows; NULL if is_serve_only */
	struct recorder_rates rates; /* used by the main thread only */
	struct recorder_folds folds;
	struct cost_meter cost;
	int64_t started_real_ns;
	char boot_id[40];
};

/*
 * Checks that this process may record on this kernel. Returns 0 or a negative errno; always 0 if
 * is_serve_only is true. After a failure, `reason`, which has `size` bytes, is one line of text
 * with the cause.
 */
int recorder_check(const struct recorder *recorder, char *reason, size_t size);

/*
 * Starts all parts of the recorder. Must be called on the thread that waits for clients. If the
 * kernel refuses only one probe, that probe is off, which is no error. Returns 0; -EPERM if the
 * kernel refuses BPF tracing altogether; or another negative errno. After a failure, `reason`,
 * which has `size` bytes, is one line of text with the cause.
 */
int recorder_start(const struct config *config, struct recorder *recorder, char *reason,
		   size_t size);

/*
 * Called after the start. Logs one line for each always-on probe: which hook in the kernel it uses,
 * or why it is off.
 */
void recorder_log_probes(struct recorder *recorder);

/* Writes a status line for systemd: for each probe, its events per second since the last status
 * line, and the number of events lost since the start. */
void recorder_status_line(struct recorder *recorder, char *out, size_t size);

/* Returns the size in bytes of all BPF maps: those of sessions, and those for unwinding user
 * stacks. */
uint64_t recorder_map_bytes(struct recorder *recorder);

/*
 * Returns the CPU time that stackd may take by the setting [budget] cpu, in millionths of one CPU.
 * 0: there is no limit.
 */
uint64_t recorder_budget(const struct recorder *recorder);

/* Reads how much memory the tables for unwinding user stacks take. False if there are no such
 * tables. */
bool recorder_unwind_stats(struct recorder *recorder, struct unwind_stats *out);

/* Applies the limits in the settings to the running recorder. Called after the settings were read
 * again. */
void recorder_set_limits(struct recorder *recorder);

/*
 * Ends recording, and writes all windows to disk. Frees nothing: queries may still be under way on
 * other threads. Main thread.
 */
void recorder_end(struct recorder *recorder);

/* Does what recorder_end() does and stops all parts, in the reverse order of the start. */
void recorder_stop(struct recorder *recorder);
/*
 * True after recorder_stop() if a thread that hangs still uses parts of the recorder and what they
 * refer to: stackd then exits without freeing them.
 */
bool recorder_is_used(const struct recorder *recorder);

#endif

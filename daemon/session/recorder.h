/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_RECORDER_H
#define STACKD_DAEMON_SESSION_RECORDER_H

/*
 * The composition root: all that a running daemon has less its socket, that is tables, sessions,
 * windows in memory and on disk, started and stopped in order. Of the rooms above, only main.c and
 * query/ hold it. Owned by main; its members are set before any other thread asks for them.
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

/* The counts of the last status line, for the rates of the next one. */
struct recorder_rates {
	int64_t at_ns; /* CLOCK_MONOTONIC; 0: there was no line yet */
	uint64_t events[PROBE_KIND_N];
};

struct sweeper;

struct recorder {
	const struct config *config; /* borrowed */
	struct broker *broker;	     /* borrowed; set before the start, may be NULL */
	bool is_serve_only; /* set before the start: answers from disk, needs no privilege */
	struct unwind_maps *unwind_maps; /* NULL: the kernel refused the memory */
	struct unwind *unwind;
	struct process_table *processes;
	struct stack_table *stacks;
	struct history *history;
	struct store *store; /* NULL: windows are not written to disk */
	struct resolver *resolver;
	struct sessions *sessions;
	struct sweeper *sweeper; /* NULL if is_serve_only */
	struct source_lines_helper *lines;
	struct recorder_rates rates; /* of the main thread */
	int64_t started_real_ns;
	char boot_id[40];
};

/*
 * Checks that this process may record on this kernel: 0, or negative errno with one line in reason
 * (size bytes). One that only serves may always.
 */
int recorder_check(const struct recorder *recorder, char *reason, size_t size);

/*
 * Starts all of it. Returns 0, or a negative errno with one line in reason (size bytes): -EPERM as
 * sessions_start_always(). A probe that the kernel refuses is off, which is no error here.
 */
int recorder_start(const struct config *config, struct recorder *recorder, char *reason,
		   size_t size);

/* Logs what is recorded and how, a line per always-on probe. After the start. */
void recorder_log_probes(struct recorder *recorder);

/* Writes one line for the service manager: events per second and losses since the last call. */
void recorder_status_line(struct recorder *recorder, char *out, size_t size);

/* Returns the bytes of all maps in the kernel: those of sessions, and those of stack walks. */
uint64_t recorder_map_bytes(struct recorder *recorder);

/* Reads how much memory the tables for stack walks take. False: user stacks are not walked. */
bool recorder_unwind_stats(struct recorder *recorder, struct unwind_stats *out);

/* Puts the limits of settings that were read again into force. */
void recorder_set_limits(struct recorder *recorder);

/* Rotates the open windows and stops everything, in reverse order. */
void recorder_stop(struct recorder *recorder);

#endif

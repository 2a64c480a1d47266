/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_RECORDER_H
#define STACKD_DAEMON_SESSION_RECORDER_H

/*
 * The running daemon less its socket: settings, tables, sessions and history, started and stopped
 * in order. Owned by main; its members are set before any other thread asks for them.
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
#include "proto/wire.h"

struct recorder {
	const struct config *config; /* borrowed */
	struct broker *broker;	     /* borrowed; set before the start, may be NULL */
	bool is_serve_only; /* set before the start: answers from disk, needs no privilege */
	struct unwind_maps *unwind_maps; /* NULL: the kernel has no room for them */
	struct unwind *unwind;
	struct process_table *processes;
	struct stack_table *stacks;
	struct history *history;
	struct store *store; /* NULL: there is none */
	struct resolver *resolver;
	struct sessions *sessions;
	struct source_lines_helper *lines;
	int64_t started_real_ns;
	char boot_id[40];
};

/*
 * Starts all of it. Returns 0, or a negative errno with one line in reason: -EPERM as
 * sessions_start_always(). A probe the kernel refuses is off, which is no error here.
 */
int recorder_start(const struct config *config, struct recorder *recorder, char *reason,
		   size_t size);

/* Takes over the settings that were read again. */
void recorder_set_limits(struct recorder *recorder);

/* Cuts the open window and stops in reverse order. */
void recorder_stop(struct recorder *recorder);

#endif

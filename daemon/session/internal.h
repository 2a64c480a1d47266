/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_INTERNAL_H
#define STACKD_DAEMON_SESSION_INTERNAL_H

/*
 * The private header of the files behind session.h: one session (session.c, validate.c, targets.c)
 * and the registry of all sessions (registry.c). session.lock is held for reading while the drain
 * cuts a window, and for writing while the session ends. A thread that needs both locks takes
 * sessions.lock first, then session.lock.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "bpf/layout.h"
#include "common/arena.h"
#include "daemon/probe/target.h"
#include "daemon/session/session.h"

struct session {
	_Atomic unsigned int refs;
	struct session_info info;
	struct filter filter;
	struct filter_cgroup cgroups[FILTER_CGROUPS];
	struct arena *arena;	   /* owns the strings and lists of filter, name and function */
	struct targets targets;	   /* traced functions; empty without PROBE_FUNCTIONS */
	struct call_stream *calls; /* calls for clients to read; NULL without PROBE_STREAMS */
	size_t n_functions;
	uint64_t hash_seed;
	bool notes_processes;  /* the probe reports fork, exec and exit, as no other does */
	pthread_rwlock_t lock; /* guards the members below, which change when the session ends */
	struct probe *probe;   /* NULL once the session has ended */
	struct drain *drain;   /* NULL once the session has ended, and while the probe is off */
	struct probe_status status;
	struct drain_stats stats; /* the drain's counts when the session ended */
	uint64_t map_bytes;
	uint64_t last_seq;
	int64_t ended_real_ns;
	int64_t due_ns;	  /* when its duration is over, CLOCK_MONOTONIC; INT64_MAX: it has none */
	char reason[256]; /* why stackd ended it early; empty: it did not */
};

/* Makes a session with a copy of the request. Returns 0 with a reference in *out, -ENOMEM, or
 * -EINVAL with *error filled. */
int session_new(const struct session_request *request, uint64_t id, struct session **out,
		struct wire_error *error);

/* Checks that the fields of the request make sense for its kind of probe, and that its processes,
 * CPUs and cgroups exist. Sets session->cgroups. 0, -ENOMEM, or -EINVAL with *error filled. */
int session_check(struct session *session, const struct session_request *request,
		  struct wire_error *error);

/* Finds the functions that the request names. For kinds without PROBE_FUNCTIONS, checks that the
 * request names none. 0, -ENOMEM, or -EINVAL with *error filled. */
int session_targets(struct session *session, const struct session_request *request,
		    const struct config *config, struct wire_error *error);

/* Opens the probe and starts the drain. Returns what probe_open() returns: 0 even if the kernel
 * refuses the probe, which is then off. */
int session_begin(struct session *session, const struct sessions_options *sessions, char *reason,
		  size_t size);

/* Ends a session that takes more CPU than the budget allows; session_note() then says so. Returns
 * what session_stop() returns. */
int session_stop_over(struct session *session, uint64_t budget_percent);

#endif

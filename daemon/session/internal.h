/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_INTERNAL_H
#define STACKD_DAEMON_SESSION_INTERNAL_H

/*
 * The private header of the files behind session.h: one session (session.c, validate.c, targets.c)
 * and the registry of all (registry.c). session.lock is held for reading while the drain cuts, for
 * writing while the session ends; sessions.lock is taken before it, never after.
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
	struct targets targets;	   /* PROBE_FUNCTIONS: what is traced */
	struct call_stream *calls; /* PROBE_STREAMS; else NULL */
	size_t n_functions;
	uint64_t hash_seed;
	bool notes_processes;  /* reports fork, exec and exit, as no other session does */
	pthread_rwlock_t lock; /* guards the members below, which change when the session ends */
	struct probe *probe;   /* NULL once it has ended */
	struct drain *drain;   /* NULL as well if the probe is off */
	struct probe_status status;
	struct drain_stats stats; /* as they were at its end */
	uint64_t map_bytes;
	uint64_t last_seq;
	int64_t ended_real_ns;
	int64_t due_ns;	  /* when its time is up, CLOCK_MONOTONIC; INT64_MAX: never */
	char reason[256]; /* why it was ended; empty: by a client, or its time was up */
};

/* Makes a session with a copy of the request. 0 with a reference; -ENOMEM, or -EINVAL with *error.
 */
int session_new(const struct session_request *request, uint64_t id, struct session **out,
		struct wire_error *error);

/* Checks the request: fields of its kind, and processes, CPUs and cgroups that exist. Sets
 * session->cgroups. 0, -ENOMEM, or -EINVAL with *error. */
int session_check(struct session *session, const struct session_request *request,
		  struct wire_error *error);

/* PROBE_FUNCTIONS: finds the functions that the request names; of other kinds checks that it names
 * none. 0, -ENOMEM, or -EINVAL with *error. */
int session_targets(struct session *session, const struct session_request *request,
		    const struct config *config, struct wire_error *error);

/* Opens the probe and starts the drain. Results as of probe_open(): a refused probe is off. */
int session_begin(struct session *session, const struct sessions_options *sessions, char *reason,
		  size_t size);

/* Ends a session that costs more than the budget allows; its note says so. As session_stop(). */
int session_stop_over(struct session *session, uint64_t budget_percent);

#endif

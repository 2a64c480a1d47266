/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_INTERNAL_H
#define STACKD_DAEMON_SESSION_INTERNAL_H

/*
 * What the files behind session.h share: one session (session.c), and all of them (sessions.c).
 * session.lock is held to read while its drain cuts, to write while it ends; sessions.lock is taken
 * before it, never after.
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
	struct arena *arena;	   /* what filter, name and function point to */
	struct targets targets;	   /* of calls */
	struct call_stream *calls; /* of stacksnoop, else NULL */
	size_t n_functions;
	uint64_t hash_seed;
	bool notes_processes;
	pthread_rwlock_t lock; /* guards what follows: written once, at its end */
	struct probe *probe;   /* NULL once it has ended */
	struct drain *drain;   /* NULL too where the probe is off */
	struct probe_status status;
	struct drain_stats stats; /* at its end */
	uint64_t map_bytes;
	uint64_t last_seq;
	int64_t ended_real_ns;
	int64_t due_ns;	  /* of CLOCK_MONOTONIC, when its time is up; INT64_MAX: never */
	char reason[256]; /* why it was ended; empty: it was asked to, or its time was up */
};

/* Copies the request. The caller's reference; -ENOMEM, or -EINVAL with *error. */
int session_new(const struct session_request *request, uint64_t id, struct session **out,
		struct wire_error *error);

/* Whether there is what the request names; finds its cgroups. -EINVAL with *error. */
int session_check(struct session *session, const struct session_request *request,
		  struct wire_error *error);

/* Finds what the request names, for a session of calls. -EINVAL with *error. */
int session_targets(struct session *session, const struct session_request *request,
		    const struct config *config, struct wire_error *error);

/* Opens the probe and starts the drain; a probe that is refused is off. As probe_open(). */
int session_begin(struct session *session, const struct sessions_options *sessions, char *reason,
		  size_t size);

/* As session_stop(), and says that it cost too much. */
int session_stop_over(struct session *session, uint64_t budget_percent);

#endif

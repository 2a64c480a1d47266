/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_INTERNAL_H
#define STACKD_DAEMON_SESSION_INTERNAL_H

/*
 * The private header of the files behind session.h: one session (session.c, validate.c, targets.c)
 * and the registry of all sessions (registry.c). session.lock is held for reading while the
 * session's drain (the thread that reads the probe's data) ends a window, and for writing while the
 * session ends. A thread that needs both locks takes sessions.lock first, then session.lock.
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
	/* those that the filter names, and their paths, NULL if it does not; see session_groups.c
	 */
	struct filter_cgroup cgroups[FILTER_CGROUPS];
	const char *cgroup_paths[FILTER_CGROUPS];
	struct arena *arena;	   /* owns the strings and lists in filter and info */
	struct targets targets;	   /* functions to trace; empty for kinds without PROBE_FUNCTIONS */
	struct call_stream *calls; /* calls for clients to read; NULL without PROBE_STREAMS */
	size_t n_functions;
	uint64_t hash_seed;
	/*
	 * true: this probe reports fork, exec and exit to stackd, because no other probe that is on
	 * does
	 */
	bool notes_processes;
	/* the windows of this session have the pressure of units, because no others do */
	bool reads_units;
	pthread_rwlock_t lock; /* guards the members below; they change when the session ends */
	struct probe *probe;   /* the open probe; NULL once the session has ended */
	struct drain *drain;   /* reads the probe; NULL after the end or if the probe is off */
	struct probe_status status;
	struct drain_stats stats; /* counts of events and losses, saved when the session ended */
	uint64_t map_bytes;
	uint64_t last_seq;
	int64_t ended_real_ns;
	/* time of CLOCK_MONOTONIC at which the session has to end; INT64_MAX: no such time */
	int64_t due_ns;
	char reason[256]; /* why stackd ended the session early; empty if it did not */
};

/* Makes a session with a copy of the request. Returns 0 with a reference in *out, -ENOMEM, or
 * -EINVAL with *error filled. */
int session_new(const struct session_request *request, uint64_t id, struct session **out,
		struct wire_error *error);

/* Checks that the fields of the request make sense for its kind of probe, and that the processes,
 * CPUs and cgroups in its filter exist. Calls session_find_groups(). Returns 0, -ENOMEM, or -EINVAL
 * with *error filled. */
int session_check(struct session *session, const struct session_request *request,
		  struct wire_error *error);

/*
 * Finds the cgroups and systemd units that the filter names, and stores them in session->cgroups.
 * Returns 0, -ENOMEM, or -EINVAL with *error filled.
 */
int session_find_groups(struct session *session, struct wire_error *error);

/*
 * Looks whether cgroups of the filter were removed and made anew, as by a restart of a unit, and
 * has the probe record the new ones. Only the sweeper calls it, and uses session->cgroups.
 */
void session_follow_groups(struct session *session);

/* Finds the functions that the request names and stores them in session->targets. For kinds without
 * PROBE_FUNCTIONS, checks that the request names none. Returns 0, -ENOMEM, or -EINVAL with *error
 * filled. */
int session_targets(struct session *session, const struct session_request *request,
		    const struct sessions_options *options, struct wire_error *error);

/* Opens the session's probe and starts to read its data. Returns 0 or a negative errno. If the
 * kernel refuses only this probe, returns 0, and the probe is off. */
int session_begin(struct session *session, const struct sessions_options *sessions, char *reason,
		  size_t size);

/* Does what drain_catch_up() does, if the session records. */
int session_catch_up(struct session *session, int64_t timeout_ns);

/* Ends the current window of an always-on session and detaches its programs, if its probe is on.
 * Does nothing if `session` is NULL. */
void session_end_always(struct session *session);

/* Ends a session because it takes more than budget_percent of a CPU. session_note() then gives this
 * as the reason. Returns the same values as session_stop(). */
int session_stop_over(struct session *session, uint64_t budget_percent);

#endif

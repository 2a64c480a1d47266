/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_SESSION_H
#define STACKD_DAEMON_SESSION_SESSION_H

/*
 * Sessions: a probe that runs with a filter and makes windows, which carry the session's number. A
 * session is always on, by the settings, or started and stopped by a client. Each owns its programs
 * in the kernel and its drain, so that none disturbs another. The registry (struct sessions) is
 * owned by the recorder; sessions are refcounted; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/config/config.h"
#include "daemon/drain/drain.h"
#include "daemon/probe/probe.h"
#include "daemon/session/filter.h"
#include "proto/wire.h"

struct unwind_maps;
struct call_stream;
struct session;
struct sessions;
struct target_tasks;
struct targets;

/* The id of an always-on session is one more than its kind. */
enum { SESSION_NAME_MAX = 64, SESSION_OFFCPU_ID = 1 };

/* Pointers are borrowed and outlive the sessions. */
struct sessions_options {
	const struct config *config;
	struct broker *broker;		  /* may be NULL: no perf event can be opened */
	const struct unwind_maps *unwind; /* may be NULL: user stacks have one frame */
	struct process_table *processes;
	struct stack_table *stacks;
	struct resolver *resolver;
	bool is_serve_only; /* no session records */
};

/* A client's request to start a session; it is copied. A number is 0 if it was not given. */
struct session_request {
	enum probe_kind kind;
	const char *name;		  /* NULL: without a name */
	const struct wire_filter *filter; /* NULL: everything */
	int64_t duration_ns;
	/* Kinds with PROBE_SAMPLES, a frequency or a period: */
	uint64_t frequency_hz;
	uint64_t period_ns;
	const char *event; /* "cpu-clock" or "cycles"; NULL: that of the settings */
	bool with_idle;
	/* Kinds with PROBE_FUNCTIONS: */
	const char *function; /* a pattern (target.h) */
	bool is_regex;
	uint64_t rate; /* PROBE_STREAMS: calls per second */
	uid_t uid;
};

/* The facts about a session that do not change once it has been started. */
struct session_info {
	uint64_t id;	  /* below SESSION_FIRST_ID: always on */
	uint64_t run;	  /* which run of stackd it was in, by the store; 0: the present one */
	char id_text[24]; /* by which clients name it: the probe's name, or the number */
	const char *name; /* NULL: without a name */
	enum probe_kind kind;
	bool is_always;
	uid_t uid;
	const struct filter *filter; /* what is recorded; its wire part is NULL for everything */
	int64_t since_real_ns;
	int64_t until_real_ns; /* planned end; INT64_MAX: when it is stopped */
	int64_t min_wait_ns;   /* PROBE_WAITS */
	uint64_t period_ns;    /* PROBE_SAMPLES; so are the next two */
	bool with_cycles;      /* sampled by cycles if the hardware counts them, else by time */
	bool with_idle;
	const char *function; /* PROBE_FUNCTIONS: the pattern; else NULL */
	bool is_regex;
	uint64_t rate; /* PROBE_STREAMS: calls per second */
};

/* Creates the registry and the thread that ends sessions whose time is up. 0 or negative errno. */
int sessions_new(const struct sessions_options *options, struct sessions **out);

/* Stops the sessions that run; their last windows go to the resolver. */
struct sessions *sessions_free(struct sessions *sessions);

/*
 * Starts the always-on sessions. 0 also if the kernel refuses a probe: then it is off and its
 * status says why. -EPERM with one line in reason (size bytes) if the kernel refuses BPF tracing
 * altogether.
 */
int sessions_start_always(struct sessions *sessions, char *reason, size_t size);

/*
 * Starts a session for a client. Returns 0 with a reference when it is recording, or negative errno
 * with *error filled, except for -ENOMEM.
 */
int sessions_start(struct sessions *sessions, const struct session_request *request,
		   struct session **out, struct wire_error *error);

/* A session of an earlier run of stackd: only its windows on disk are left, for queries. */
struct session_past {
	const struct session_request *request; /* with which it was started; copied */
	uint64_t id;
	uint64_t run;
	int64_t since_real_ns;
	int64_t ended_real_ns;
	int64_t min_wait_ns;
	uint64_t period_ns;
};

/* Makes such a session. 0 with a reference; -ENOMEM, or -EINVAL with *error for a bad request. */
int session_new_past(const struct session_past *past, struct session **out,
		     struct wire_error *error);

/* Makes sure that sessions to come have higher numbers than this one. */
void sessions_skip(struct sessions *sessions, uint64_t id);

/* Finds a session by id or name, running ones first. Returns a reference, or NULL. */
struct session *sessions_find(struct sessions *sessions, const char *text);

/* Returns the always-on session of a kind, on or off; borrowed until sessions_free(). */
struct session *sessions_always(struct sessions *sessions, enum probe_kind kind);

/* Lists references to all sessions, the always-on ones that are on first. 0 or -ENOMEM. */
int sessions_list(struct sessions *sessions, struct session ***list_out, size_t *n_out);
void sessions_list_free(struct session **list, size_t n);

/* Counts the clients' sessions that run, and those that were refused for [control] max_sessions. */
void sessions_count(struct sessions *sessions, size_t *running_out, uint64_t *refused_out);

/* Returns when the drain that is furthest behind last finished a cut, by CLOCK_MONOTONIC, for the
 * watchdog. Always-on sessions only; INT64_MAX: none runs. */
int64_t sessions_last_drained_ns(struct sessions *sessions);

const struct session_info *session_info(const struct session *session);

/* Returns when the session ended, in ns since the epoch; INT64_MAX while it runs. */
int64_t session_ended(struct session *session);

/*
 * Ends a session: cuts its open window and takes its programs out of the kernel. 0; -EALREADY if it
 * had ended before; -EPERM for an always-on one.
 */
int session_stop(struct session *session);

/* Ends a session whose client went away before it got the answer; the session's note says so. */
int session_stop_untold(struct session *session);

/* Cuts the open window as drain_cut() does; of an ended session it returns the last number. */
int session_cut(struct session *session, int64_t timeout_ns, uint64_t *seq_out);

/* Reads the counts up to now, or up to the end of the session. */
void session_stats(struct session *session, struct drain_stats *out);

/* Returns how many events of its kind the programs counted, filtered ones too: probe_kind_events().
 */
uint64_t session_events(const struct session *session, const struct drain_stats *stats);

/* Returns how many functions the session traces or, after its end, traced. */
size_t session_functions(struct session *session);

/* Returns the program or library that has them; borrowed from the session. NULL: the kernel, or
 * unknown. */
const char *session_file(const struct session *session);

/* Returns the stream of its calls; borrowed from the session. NULL: it streams none. */
struct call_stream *session_calls(struct session *session);

/* Finds all functions or tracepoints that match a pattern, for the caller to free. 0, or negative
 * errno with *error, except for -ENOMEM. */
int targets_search(const char *text, bool is_regex, const struct target_tasks *tasks,
		   struct targets *out, struct wire_error *error);

/* Copies a remark into the arena: what the kernel refused, or why the session was ended. *out is
 * NULL without one. 0 or -ENOMEM. */
struct arena;
int session_note(struct session *session, struct arena *arena, const char **out);

/* Read the state of the probe and the bytes of its maps. After the session's end the hook stays,
 * but there are no programs, and no maps. */
void session_probe_status(struct session *session, struct probe_status *out);
uint64_t session_map_bytes(struct session *session);

/* True while the session records. */
bool session_is_on(struct session *session);

struct session *session_ref(struct session *session);
struct session *session_unref(struct session *session);
void session_unrefp(struct session **session);

#endif

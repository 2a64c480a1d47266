/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_SESSION_H
#define STACKD_DAEMON_SESSION_SESSION_H

/*
 * Running probes: in goes what to record and of whom, out come windows in the history, each with
 * its session's number. A session is always on, from the settings, or started and stopped by a
 * client; it owns its programs in the kernel and its drain, so that none disturbs another. Owned
 * by the recorder; refcounted, any thread.
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

/* All of it is borrowed and outlives the sessions. */
struct sessions_options {
	const struct config *config;
	struct broker *broker;		  /* may be NULL */
	const struct unwind_maps *unwind; /* likewise */
	struct process_table *processes;
	struct stack_table *stacks;
	struct resolver *resolver;
	bool is_serve_only; /* none records */
};

/* What a client asks for; copied. Numbers are 0 where they are not given. */
struct session_request {
	enum probe_kind kind;
	const char *name;		  /* NULL: none */
	const struct wire_filter *filter; /* NULL: everything */
	int64_t duration_ns;
	uint64_t frequency_hz; /* oncpu: one of these two */
	uint64_t period_ns;
	const char *event; /* oncpu: "cpu-clock" or "cycles"; NULL: as the settings say */
	bool with_idle;
	const char *function; /* of calls: a pattern, see target.h; NULL: none */
	bool is_regex;
	uint64_t rate; /* of stacksnoop, calls a second */
	uid_t uid;
};

/* What does not change while the session lives. */
struct session_info {
	uint64_t id;	  /* below SESSION_FIRST_ID: always on */
	uint64_t run;	  /* of stackd, as the store numbers them, if it has ended; 0: this one */
	char id_text[24]; /* as clients name it: the probe's name, or the number */
	const char *name; /* NULL: none */
	enum probe_kind kind;
	bool is_always;
	uid_t uid;
	const struct filter *filter; /* what is recorded; its wire part is NULL for everything */
	int64_t since_real_ns;
	int64_t until_real_ns; /* planned end; INT64_MAX: none */
	int64_t min_wait_ns;   /* offcpu */
	uint64_t period_ns;    /* oncpu */
	bool with_cycles;      /* oncpu: by them, where the hardware counts them */
	bool with_idle;
	const char *function; /* of calls; else NULL */
	bool is_regex;
	uint64_t rate; /* of stacksnoop */
};

/* 0, or -ENOMEM. Starts the thread that ends sessions when their time is up. */
int sessions_new(const struct sessions_options *options, struct sessions **out);

/* Stops those that run; the last windows go to the resolver. */
struct sessions *sessions_free(struct sessions *sessions);

/*
 * Opens the always-on probes. 0 also when the kernel refuses one: then it is off, and says why.
 * -EPERM with one line in reason when the kernel refuses BPF tracing as such.
 */
int sessions_start_always(struct sessions *sessions, char *reason, size_t size);

/*
 * Starts one for a client: 0 and a reference, or a negative errno with *error filled as by
 * daemon/query/query.h. It is recording when this returns.
 */
int sessions_start(struct sessions *sessions, const struct session_request *request,
		   struct session **out, struct wire_error *error);

/* One of an earlier run, of which there is only what is on disk: it can be asked about. */
struct session_past {
	const struct session_request *request; /* what was asked for, copied */
	uint64_t id;
	uint64_t run;
	int64_t since_real_ns;
	int64_t ended_real_ns;
	int64_t min_wait_ns;
	uint64_t period_ns;
};

/* 0 and a reference; -ENOMEM, or -EINVAL with *error for a request that makes no sense. */
int session_new_past(const struct session_past *past, struct session **out,
		     struct wire_error *error);

/* Sessions to come have higher numbers than this. */
void sessions_skip(struct sessions *sessions, uint64_t id);

/* By id or name, running ones first; with a reference, NULL where there is none. */
struct session *sessions_find(struct sessions *sessions, const char *text);

/* The always-on one of a kind, on or off. Borrowed for as long as the sessions live. */
struct session *sessions_always(struct sessions *sessions, enum probe_kind kind);

/* References to all that are kept, oldest first. 0 or -ENOMEM. */
int sessions_list(struct sessions *sessions, struct session ***list_out, size_t *n_out);
void sessions_list_free(struct session **list, size_t n);

/* Ad-hoc sessions that run, and how many were refused for [control] max_sessions. */
void sessions_count(struct sessions *sessions, size_t *running_out, uint64_t *refused_out);

/* The newest end of a drain's cut that is oldest, for the watchdog: INT64_MAX where none runs. */
int64_t sessions_last_drained_ns(struct sessions *sessions);

const struct session_info *session_info(const struct session *session);

/* When it ended, in ns since the epoch; INT64_MAX while it runs. */
int64_t session_ended(struct session *session);

/*
 * Ends it: the open window is cut and nothing of it is left in the kernel. 0; -EALREADY where it
 * has ended before; -EPERM for one that is always on.
 */
int session_stop(struct session *session);

/* The same, and says that who started it is gone and was not told. */
int session_stop_untold(struct session *session);

/* As drain_cut(); of one that has ended the number of its last window. */
int session_cut(struct session *session, int64_t timeout_ns, uint64_t *seq_out);

/* Counts up to now, or to its end. */
void session_stats(struct session *session, struct drain_stats *out);

/* Returns how many events of its kind the programs counted, filtered ones too: probe_kind_events().
 */
uint64_t session_events(const struct session *session, const struct drain_stats *stats);

/* How many functions it is on, or was. */
size_t session_functions(struct session *session);

/* The program or library they are in; borrowed, as long as the session. NULL: not known, or none.
 */
const char *session_file(const struct session *session);

/* Where its calls are streamed; borrowed, as long as the session. NULL: it streams none. */
struct call_stream *session_calls(struct session *session);

/* All that a pattern names on this host: 0, or a negative errno with *error. The caller's. */
int targets_search(const char *text, bool is_regex, const struct target_tasks *tasks,
		   struct targets *out, struct wire_error *error);

/* What there is to say of it: what the kernel refused, or why it was ended. *out may be NULL. */
struct arena;
int session_note(struct session *session, struct arena *arena, const char **out);

/* What hook it got, and bytes of its maps; after its end what was true before, less programs. */
void session_probe_status(struct session *session, struct probe_status *out);
uint64_t session_map_bytes(struct session *session);
bool session_is_on(struct session *session);

struct session *session_ref(struct session *session);
struct session *session_unref(struct session *session);
void session_unrefp(struct session **session);

#endif

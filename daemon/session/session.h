/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_SESSION_H
#define STACKD_DAEMON_SESSION_SESSION_H

/*
 * A session is a probe that runs with a filter and makes windows (the data of a time interval),
 * which carry the session's id. The settings say which sessions are always on; clients start and
 * stop others. Each session owns its programs in the kernel and its drain (the thread that reads
 * their data), so that sessions do not disturb each other. The registry (struct sessions) is owned
 * by the recorder; sessions are refcounted. All functions may be called on any thread.
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

/* The id of an always-on session is its enum probe_kind plus 1. */
enum { SESSION_NAME_MAX = 64, SESSION_OFFCPU_ID = 1 };

/* The pointers are borrowed and must stay valid for as long as the sessions exist. */
struct sessions_options {
	const struct config *config;
	struct broker *broker;		  /* opens perf events; NULL: none can be opened */
	struct parser *parser;		  /* the processes that parse files of strangers */
	const struct unwind_maps *unwind; /* NULL: user stacks have one frame each */
	struct process_table *processes;
	struct stack_table *stacks;
	struct resolver *resolver;
	/* the thread that wakes the drains; started by sessions_new(), ended by sessions_free() */
	struct cost_meter *cost; /* adds up what stackd costs */
	struct tick *tick;
	bool is_serve_only; /* nothing is recorded, only queries are answered */
};

/* A client's request to start a session; the session keeps a copy. A number that the client did not
 * give is 0. */
struct session_request {
	enum probe_kind kind;
	const char *name;		  /* NULL: the session has no name */
	const struct wire_filter *filter; /* NULL: everything is recorded */
	int64_t duration_ns;		  /* 0: the session runs until a client stops it */
	/* The members frequency_hz to with_idle are only for kinds with the trait PROBE_SAMPLES. */
	uint64_t frequency_hz; /* samples per second; 0 if not given */
	uint64_t period_ns;    /* time from sample to sample; 0 if not given */
	const char *event;     /* "cpu-clock" or "cycles"; NULL: the event in the settings */
	bool with_idle;	       /* idle CPUs are sampled too */
	/*
	 * The members `function`, is_regex and `rate` are only for kinds with the trait
	 * PROBE_FUNCTIONS.
	 */
	const char *function; /* pattern of the functions to trace, see target.h */
	bool is_regex;
	/* maximum number of calls per second that are sent to a client; only with PROBE_STREAMS */
	uint64_t rate;
	uid_t uid;
};

/* Properties of a session that do not change once it has been started. */
struct session_info {
	uint64_t id; /* below SESSION_FIRST_ID for always-on sessions */
	/*
	 * number of the run of the daemon that recorded the session, from the database; 0: this run
	 */
	uint64_t run;
	/*
	 * the id by which clients refer to the session: the probe's name if it is always on, else
	 * the number
	 */
	char id_text[24];
	const char *name; /* NULL: the session has no name */
	enum probe_kind kind;
	bool is_always;
	uid_t uid;
	const struct filter *filter; /* what is recorded; filter->wire is NULL if everything is */
	int64_t since_real_ns;
	int64_t until_real_ns; /* planned end, ns since the epoch; INT64_MAX: runs until stopped */
	int64_t min_wait_ns;   /* shortest wait that is recorded; only for kinds with PROBE_WAITS */
	uint64_t period_ns;    /* time from sample to sample; only for kinds with PROBE_SAMPLES */
	/* samples are taken by CPU cycles if the hardware counts them, else by time */
	bool with_cycles;
	bool with_idle;	      /* idle CPUs are sampled too */
	const char *function; /* pattern of the traced functions; NULL for kinds without
				 PROBE_FUNCTIONS */
	bool is_regex;
	/* maximum number of calls per second that are sent to a client; only with PROBE_STREAMS */
	uint64_t rate;
};

/* How much an always-on probe records, to keep within the budget. All 0: all that is asked for. */
struct session_pace {
	/* each level doubles the length below which waits and operations are recorded by chance */
	unsigned int level;
	uint32_t brake_share;  /* see probe_set_brake() */
	uint32_t shed;	       /* enum shed_flag */
	uint32_t sample_every; /* see probe_set_shed() */
};

/*
 * Sets how much an always-on probe records. Returns the length in ns below which it records waits
 * or operations by chance; 0: it records none by chance. Any thread.
 */
uint64_t session_set_pace(struct session *session, const struct config *config,
			  const struct session_pace *pace);

/* Creates the registry, and the thread that ends sessions when their duration is over. Returns 0 or
 * a negative errno. */
int sessions_new(const struct sessions_options *options, struct sessions **out);

/*
 * Ends all sessions, and hands their last windows to the resolver (the thread that looks up names).
 * No session can be started any more; other threads may go on asking for those that there were.
 * Does nothing if there is no registry, or at a second call.
 */
void sessions_end(struct sessions *sessions);

/* Does what sessions_end() does, and frees the registry. */
struct sessions *sessions_free(struct sessions *sessions);

/*
 * Starts the always-on sessions. Returns 0 even if the kernel refuses one of the probes: that probe
 * is then off, and session_probe_status() says why. Returns -EPERM if the kernel refuses BPF
 * tracing altogether; `reason`, which has `size` bytes, is then one line of text with the cause.
 */
int sessions_start_always(struct sessions *sessions, char *reason, size_t size);

/*
 * Starts a session for a client. Returns 0 with a reference in *out when the session records;
 * -ENOMEM; or another negative errno with *error filled.
 */
int sessions_start(struct sessions *sessions, const struct session_request *request,
		   struct session **out, struct wire_error *error);

/* A session of an earlier run of stackd, of which only the windows on disk are left. */
struct session_past {
	const struct session_request *request; /* the request that started the session; copied */
	uint64_t id;
	uint64_t run;
	int64_t since_real_ns;
	int64_t ended_real_ns;
	int64_t min_wait_ns;
	uint64_t period_ns;
};

/* Makes a struct session for a session that an earlier run of stackd recorded, so that queries can
 * read its windows. Returns 0 with a reference in *out, -ENOMEM, or -EINVAL with *error filled for
 * a bad request. */
int session_new_past(const struct session_past *past, struct session **out,
		     struct wire_error *error);

/* Makes sure that the ids of new sessions are higher than this id. */
void sessions_skip(struct sessions *sessions, uint64_t id);

/* Finds a session by its id or name. If several match, prefers a running one. Returns a reference,
 * or NULL. */
struct session *sessions_find(struct sessions *sessions, const char *text);

/* Returns the always-on session of a kind, even if its probe is off; borrowed until
 * sessions_free().
 */
struct session *sessions_always(struct sessions *sessions, enum probe_kind kind);

/* Lists references to sessions: first the always-on sessions whose probe is on, then all sessions
 * of clients. Returns 0 or -ENOMEM. */
int sessions_list(struct sessions *sessions, struct session ***list_out, size_t *n_out);
void sessions_list_free(struct session **list, size_t n);

/* Has sessions whose filter names a cgroup record the one that has its path now. */
void sessions_follow_groups(struct sessions *sessions);

/*
 * Waits until everything that the sessions' BPF programs have reported so far is handled. Returns
 * 0, -ENOMEM, or -ETIMEDOUT if a session was not ready in timeout_ns.
 */
int sessions_catch_up(struct sessions *sessions, int64_t timeout_ns);

/* Counts the running sessions of clients, and the requests to start one that were refused because
 * of the setting [control] max_sessions. */
void sessions_count(struct sessions *sessions, size_t *running_out, uint64_t *refused_out);

/*
 * A "cut" reads all data of a probe and ends the current window. Finds the always-on session whose
 * last cut is oldest, and returns the time of that cut (CLOCK_MONOTONIC, ns). Returns INT64_MAX if
 * no always-on session runs.
 */
int64_t sessions_last_drained_ns(struct sessions *sessions);

/*
 * Returns a time (CLOCK_MONOTONIC, ns): everything that the running sessions, also those of
 * clients, recorded before this time is in windows that have been built. INT64_MAX if no session
 * runs.
 */
int64_t sessions_built_ns(struct sessions *sessions);

const struct session_info *session_info(const struct session *session);

/* Returns when the session ended, in ns since the epoch; INT64_MAX while it runs. */
int64_t session_ended(struct session *session);

/*
 * Ends a session: ends its current window and detaches its programs. Returns 0; -EALREADY if the
 * session had ended before; -EPERM if it is an always-on one.
 */
int session_stop(struct session *session);

/* Ends a session whose client has disconnected before it got the reply to Start. session_note()
 * then gives this as the reason. */
int session_stop_untold(struct session *session);

/*
 * Ends the current window of a running session, as drain_cut() does, so that everything recorded up
 * to now can be queried. If the session has ended, only sets *seq_out to the number of its last
 * window.
 */
int session_cut(struct session *session, int64_t timeout_ns, uint64_t *seq_out);

/* Copies the session's counts of events and losses, from its start up to now or up to its end. */
void session_stats(struct session *session, struct drain_stats *out);

/*
 * Returns how many events the session's BPF programs have counted, including those that the filter
 * drops. probe_kind_events() returns the word for these events, such as "switches".
 */
uint64_t session_events(const struct session *session, const struct drain_stats *stats);

/* Returns how many functions the session traces or, after its end, traced. */
size_t session_functions(struct session *session);

/* Returns the path of the program or library that has the traced functions, borrowed from the
 * session. NULL: the functions are in the kernel, or the path is not known. */
const char *session_file(const struct session *session);

/* Returns the stream of the session's traced calls, borrowed from the session. NULL if the session
 * streams no calls. */
struct call_stream *session_calls(struct session *session);

struct targets_options {
	const struct config *config;
	struct parser *parser; /* the processes that parse programs and libraries */
	bool is_regex;
	/*
	 * refuse functions of programs that only root may trace, see target_find_user()
	 */
	bool is_restricted;
	const struct target_tasks *tasks; /* NULL: none */
};

/*
 * Finds all functions or tracepoints that match a pattern; the caller frees *out. Returns 0,
 * -ENOMEM, or another negative errno with *error filled.
 */
int targets_search(const struct targets_options *options, const char *text, struct targets *out,
		   struct wire_error *error);

/*
 * Checks that there is a process, or a thread, with this id. If not, fills *error, which blames
 * `field`, and returns -EINVAL.
 */
int session_check_task(int64_t id, bool is_process, const char *field, struct wire_error *error);

struct arena;

/* Writes remarks about the session into the arena: why stackd ended it, and which functions that
 * match are not recorded. Sets *out to NULL if there is none. Returns 0 or -ENOMEM. */
int session_note(struct session *session, struct arena *arena, const char **out);

/*
 * Reads the state of the session's probe. After the end of the session, the state still names the
 * hook but lists no BPF programs.
 */
void session_probe_status(struct session *session, struct probe_status *out);

/* Returns the size in bytes of the maps of the session's probe; 0 after the session's end. */
uint64_t session_map_bytes(struct session *session);

/* True while the session is recording. */
bool session_is_on(struct session *session);

struct session *session_ref(struct session *session);
struct session *session_unref(struct session *session);
void session_unrefp(struct session **session);

#endif

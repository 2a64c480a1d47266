/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_INTERNAL_H
#define STACKD_DAEMON_SERVICE_INTERNAL_H

/*
 * The private structs of the service: the table of methods, and the exchange, which is a call with
 * its replies. An exchange is used by one thread of the pool at a time. Only daemon/service/
 * includes this.
 *
 * The source files of the folder form layers, listed here from the lowest to the highest; each
 * calls only files of lower layers: admission, loop, socket < client < accept < server < places,
 * reply < snapshot_methods < session_methods < methods < service.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "daemon/query/query.h"
#include "daemon/service/admission.h"
#include "daemon/service/loop.h"
#include "daemon/service/server.h"
#include "daemon/service/service.h"
#include "proto/codec.h"
#include "proto/stacks_once.h"

/*
 * Sizes in bytes of one reply when a long answer is sent in several replies. Rows of a snapshot are
 * added to a reply until they have SERVICE_ROWS bytes. A reply with a list of windows has at most
 * SERVICE_WINDOWS bytes, many of which may be gaps, which each reply repeats.
 */
enum { SERVICE_ROWS = 64 * 1024, SERVICE_WINDOWS = 256 * 1024 };

/* An answer with at most this number of rows is short: one or a few replies have them all. */
enum { SHORT_ROWS = 100 };

/*
 * Classes of methods, by who may call them: everyone who can connect; the members of the query
 * group; the members of the control group.
 */
enum method_class { METHOD_OPEN, METHOD_QUERY, METHOD_CONTROL, METHOD_CLASSES };

struct service_group {
	const char *name; /* NULL: no group, so that only root and the daemon's own user may call */
	bool is_known;
	gid_t gid;
};

/*
 * Greatest number of threads of the pool that make the first step of slow methods at the same time,
 * for all users and for one user who is not root. Slow methods read programs, and load BPF programs
 * into the kernel or remove them. The other threads of the pool stay free for clients that only
 * query.
 */
enum { SLOW_AT_ONCE = LOOP_WORKERS / 2, SLOW_PER_USER = SLOW_AT_ONCE / 2 };

/* The calls of slow methods whose first step is being made. */
struct slow_calls {
	pthread_mutex_t lock;
	struct slow_call {
		bool is_used;
		uid_t uid; /* the user who called */
	} calls[SLOW_AT_ONCE];
};

/*
 * Returns a place for a call of a slow method by this user, to be given back by slow_end(). NULL if
 * there are as many calls as there may be, or as many of this user.
 */
struct slow_call *slow_begin(struct slow_calls *slow, uid_t uid);
void slow_end(struct slow_calls *slow, struct slow_call *call);

struct service {
	struct recorder *recorder;
	/* Server whose limits the method Status reports. NULL: Status reports no limits of a
	 * server. */
	struct server *server;
	struct service_group groups[METHOD_CLASSES];
	struct slow_calls slow;
	/*
	 * A client has this long to read an answer whose rows are made as it reads them: meanwhile
	 * the answer keeps its memory, and the database keeps what was deleted since.
	 */
	int64_t answer_time_ns;
	atomic_int_fast64_t answer_time_hits; /* answers that were not read in this time */
	struct admission admission;
};

struct exchange {
	struct service *service;
	struct server_peer *peer;
	struct varlink_message *call;
	const struct method *method; /* NULL: the method that was called does not exist */
	struct arena *arena;
	/*
	 * The decoded parameters: a struct wire_METHOD_request. NULL: the method has no parameters.
	 */
	void *request;
	struct answer *answer; /* the result of the query */
	/* for Snapshot with stacks_once: the stacks that the client has; else NULL */
	struct stacks_sent *sent;
	int64_t again_ns; /* when the query is made again, see struct query_peer */
	bool has_begun; /* the first step has been made; the other steps only call method->reply */
	/* Index of the first row or window of the answer that was not sent yet. */
	size_t next;
	int64_t answered_ns; /* CLOCK_MONOTONIC time of the first reply of the answer */
	bool has_replied;    /* for Snapshot and Overview: the first reply has been made */
	int64_t due_ns;	     /* for Start with `more`: CLOCK_MONOTONIC time of the next reply */
	bool is_bound;	     /* the session that was started ends when the exchange ends */
	bool is_unconfirmed; /* the session that was started ends if the reply cannot be written */
	struct query_follow *follow;
	struct place place; /* of an answer that is being made and sent, see struct method */
};

/* One row of the table of methods (methods.c). */
struct method {
	const struct wire_method *wire; /* name of the method, and the types of its parameters */
	enum method_class class;
	bool is_slow;	 /* the first step may take seconds */
	bool needs_more; /* a call without the flag `more` is refused */
	/* an answer needs a place (see struct admission), because it takes much memory */
	bool has_place;
	/*
	 * True if the answer to the request may have so many rows that the client reads it for
	 * long. NULL: no answer of the method does.
	 */
	bool (*is_long)(const void *request);

	/*
	 * Makes exchange->answer from the decoded request. NULL if the member `reply` needs no
	 * answer.
	 */
	query_function *query;

	/*
	 * Appends the next reply to *out. Returns SERVER_MORE or SERVER_WAIT if another step has to
	 * follow, 0 after the last reply, or a negative errno if the daemon failed. NULL: the
	 * method has one reply, which is the whole answer.
	 */
	int (*reply)(struct exchange *exchange, struct text *out);
};

/*
 * Finds a method in the table of methods by its full name, such as "io.stackd.Status". Returns NULL
 * if there is no such method.
 */
const struct method *method_find(const char *name);

/*
 * Checks whether the peer may call methods of a class. Returns METHOD_OPEN if it may, else the
 * class whose group the peer is not in. For METHOD_CONTROL, the peer must be in the groups of both
 * METHOD_QUERY and METHOD_CONTROL.
 */
enum method_class method_refused(const struct service *service, const struct server_peer *peer,
				 enum method_class class);

/* Returns the caller of an exchange in the form that daemon/query/query.h defines. */
struct query_peer query_peer_of(struct exchange *exchange);

/*
 * Appends an error reply, whose first parameter is `what`. Returns 0, since no other reply follows,
 * or a negative errno.
 */
int reply_error(enum wire_error_code code, const char *what, struct text *out);

/*
 * Gives the call the place that its answer needs. Returns 0; SERVER_WAIT if the call has to wait
 * for others; or -EBUSY if it has waited for as long as it may, with *limit_out set to the name of
 * the limit. If limit_out is NULL, a call may wait for ever.
 */
int place_take(struct exchange *exchange, const char **limit_out);

/* Gives up the place, so that another call gets one. */
void place_leave(struct exchange *exchange);

/*
 * Appends the error of a query as an error reply, and clears the error. Returns the same as
 * reply_error().
 */
int reply_query_error(struct wire_error *error, struct text *out);

/*
 * Appends the error PermissionDenied, which names the group whose members may call methods of this
 * class.
 */
int reply_refused(const struct service *service, enum method_class class, struct text *out);

/* Appends the error `Failed` to *out. Logs the reason, which is a negative errno. */
int reply_failed(const struct exchange *exchange, int reason, struct text *out);

/* Appends a reply with the whole answer. No other reply follows. */
int reply_answer(struct exchange *exchange, struct text *out);

/*
 * Appends a reply with the whole answer, or the error ExpectedMore if it is too long for one reply.
 * Not for snapshots, whose rows are made one by one.
 */
int reply_answer_or_refuse(struct exchange *exchange, struct text *out);

/*
 * Makes the next rows of a snapshot and appends a reply with them. Returns SERVER_MORE if rows are
 * left, 0 if not, or a negative errno.
 */
int reply_rows(struct exchange *exchange, struct text *out);

/* Functions for the members is_long, query and reply of struct method. */
bool snapshot_is_long(const void *params);
bool follow_is_long(const void *params);
bool overview_is_long(const void *params);
query_function snapshot_query;
int snapshot_reply(struct exchange *exchange, struct text *out);
int overview_reply(struct exchange *exchange, struct text *out);
int windows_reply(struct exchange *exchange, struct text *out);
int start_reply(struct exchange *exchange, struct text *out);
int follow_reply(struct exchange *exchange, struct text *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_INTERNAL_H
#define STACKD_DAEMON_SERVICE_INTERNAL_H

/*
 * The inside of the service: the table of methods, and one exchange, which is a call with its
 * replies. One thread of the pool at a time has an exchange. Only daemon/service/ includes this.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "daemon/query/query.h"
#include "daemon/service/server.h"
#include "daemon/service/service.h"
#include "proto/codec.h"

/* Bytes that each of several replies should have. */
enum { SERVICE_PART = 256 * 1024 };

/* Classes of methods: for everyone who can connect, for the query group, for the control group. */
enum method_class { METHOD_OPEN, METHOD_QUERY, METHOD_CONTROL, METHOD_CLASSES };

struct service_group {
	const char *name; /* NULL: only root and our own user may */
	bool is_known;
	gid_t gid;
};

struct service {
	struct recorder *recorder;
	struct server *server; /* NULL: Status reports no limits of the socket */
	struct service_group groups[METHOD_CLASSES];
	atomic_int slow; /* calls of slow methods that are being begun */
};

struct exchange {
	struct service *service;
	struct server_peer *peer;
	struct varlink_message *call;
	const struct method *method; /* NULL: there is no such method */
	struct arena *arena;
	void *request;	       /* decoded, struct wire_METHOD_request; NULL: has no parameters */
	struct answer *answer; /* what the query made of the request */
	bool has_begun;	       /* the request was accepted; steps from now on continue the reply */
	size_t next;	       /* first row or window of the answer that was not sent */
	int64_t due_ns;	       /* CLOCK_MONOTONIC time at which a Start stream replies next */
	bool is_bound;	       /* the session that was started ends with the exchange */
	bool is_unconfirmed;   /* the session ends, too, unless this reply of Start is written */
	struct query_follow *follow;
};

/* One row of the table of methods (methods.c). */
struct method {
	const struct wire_method *wire; /* its name, and what its parameters are */
	enum method_class class;
	bool is_slow;	 /* to begin it may take seconds */
	bool needs_more; /* a call without `more` is refused */

	/* Makes the answer from the decoded request; NULL: `reply` does. */
	query_function *query;

	/*
	 * Appends the next reply to out. SERVER_MORE or SERVER_WAIT where another step follows, 0
	 * after the last reply, or a negative errno for a failure of the daemon, with out as it
	 * was. NULL: the whole answer is the only reply.
	 */
	int (*reply)(struct exchange *exchange, struct text *out);
};

/* Returns the row of a method by its qualified name, NULL where there is none. */
const struct method *method_find(const char *name);

/*
 * Returns the class that keeps the peer from calling a method of `class`, or METHOD_OPEN where it
 * may. Control includes query.
 */
enum method_class method_refused(const struct service *service, const struct server_peer *peer,
				 enum method_class class);

/* Returns who calls, for daemon/query/query.h. */
struct query_peer query_peer_of(const struct exchange *exchange);

/* Appends an error reply. Returns 0, as after a last reply, or a negative errno. */
int reply_error(enum wire_error_code code, const char *what, struct text *out);

/* Appends an error of a query and clears it. Returns as reply_error(). */
int reply_query_error(struct wire_error *error, struct text *out);

/* Appends PermissionDenied with the group that may call methods of a class. */
int reply_refused(const struct service *service, enum method_class class, struct text *out);

/* Appends Failed, and logs why the daemon could not answer. */
int reply_failed(const struct exchange *exchange, int reason, struct text *out);

/* Appends the whole answer as the only reply. */
int reply_answer(struct exchange *exchange, struct text *out);

/* Appends the whole answer as the only reply, or ExpectedMore where it is too long for one. */
int reply_answer_or_refuse(struct exchange *exchange, struct text *out);

/* Appends the next rows of a snapshot. Returns SERVER_MORE while there are more, then 0. */
int reply_rows(struct exchange *exchange, struct text *out);

/* The queries and replies of methods that are more than their answer (see struct method). */
query_function snapshot_query;
int snapshot_reply(struct exchange *exchange, struct text *out);
int windows_reply(struct exchange *exchange, struct text *out);
int start_reply(struct exchange *exchange, struct text *out);
int follow_reply(struct exchange *exchange, struct text *out);

#endif

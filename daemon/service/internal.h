/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_INTERNAL_H
#define STACKD_DAEMON_SERVICE_INTERNAL_H

/*
 * The inside of the service: one call that is being answered. Used by one thread of the pool at a
 * time. Only daemon/service*.c include this.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "daemon/query/query.h"
#include "daemon/service/server.h"
#include "daemon/service/service.h"
#include "proto/codec.h"

enum { SERVICE_PART = 256 * 1024 }; /* bytes of one of several replies, aimed at */

/* Who may call a method: whoever can connect, members of the group that may ask, or start. */
enum method_class { METHOD_OPEN, METHOD_QUERY, METHOD_CONTROL, METHOD_CLASSES };

struct service_group {
	const char *name; /* NULL: nobody besides root and us */
	bool is_known;
	gid_t gid;
};

struct service {
	struct recorder *recorder;
	struct server *server; /* NULL: no limits to report */
	struct service_group groups[METHOD_CLASSES];
	atomic_int slow; /* calls that are being begun, of methods that are slow */
};

struct exchange {
	struct service *service;
	struct server_peer *peer;
	struct varlink_message *call;
	const struct method *method;
	struct arena *arena;
	struct answer *answer; /* that is being sent in parts */
	size_t next;	       /* its first row not sent */
	int64_t due_ns;	       /* of a stream: when there is something to say, CLOCK_MONOTONIC */
	bool is_bound;	       /* the answer's session ends with the exchange */
	bool is_untold;	       /* it ends then, too, unless the reply is written */
	struct query_follow *follow;
};

/*
 * Appends a reply to out. 1: more follow, 0: it was the last, or a negative errno with out as it
 * was: a failure that is ours.
 */
typedef int (*method_handler)(struct exchange *exchange, struct text *out);

struct method {
	const struct wire_method *wire;
	method_handler handle;
	enum method_class class;
	bool is_slow; /* to begin it takes seconds where the host is slow, or there is much */
};

/*
 * The class that keeps the peer from calling a method of `class`, or METHOD_OPEN: it may. Control
 * includes query. Checked for every call before its handler; handlers use it for what a parameter
 * makes a matter of another class.
 */
enum method_class method_refused(const struct service *service, const struct server_peer *peer,
				 enum method_class class);

/* Appends PermissionDenied, naming the group that is asked for. */
int reply_refused(const struct service *service, enum method_class class, struct text *out);

/* Who asks, for daemon/query/query.h. */
struct query_peer query_peer_of(const struct exchange *exchange);

/* NULL when there is none of this name. */
const struct method *method_find(const char *name);

/* Appends an error reply; returns 0 for "that was the last", or a negative errno. */
int reply_error(enum wire_error_code code, const char *what, struct text *out);

/* The same for a refusal by daemon/query/query.h, whose strings are freed. */
int reply_query_error(struct wire_error *error, struct text *out);

/* The next part of a snapshot: 1 while there are more, 0 after the last. */
int reply_rows(struct exchange *exchange, struct text *out);

int handle_snapshot(struct exchange *exchange, struct text *out);
int handle_start(struct exchange *exchange, struct text *out);
int handle_follow(struct exchange *exchange, struct text *out);
int handle_functions(struct exchange *exchange, struct text *out);
int handle_stop(struct exchange *exchange, struct text *out);
int handle_windows(struct exchange *exchange, struct text *out);

#endif

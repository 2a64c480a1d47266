/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_SERVER_H
#define STACKD_DAEMON_SERVICE_SERVER_H

/*
 * Connections: bytes of strangers come in, whole messages go to a handler, its replies go out in
 * order. Knows nothing of what a message says. Belongs to the loop's thread; the handler is called
 * on threads of the pool, never twice at a time for one connection.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"
#include "daemon/service/socket.h"

struct loop;
struct server;

/* All called on a thread of the pool. */
struct server_handler {
	void *userdata;

	/*
	 * A message arrived: 0 and *exchange_out, or a negative errno, after which the connection
	 * is closed (-EMSGSIZE: its shape is beyond the limits). peer outlives the exchange,
	 * message (NUL-ended, len without it) only the call.
	 */
	int (*begin)(void *userdata, struct server_peer *peer, const char *message, size_t len,
		     void **exchange_out);

	/*
	 * Appends the next reply to out, if there is one: 1 when another step has to follow, which
	 * happens once this one is written; SERVER_WAIT when another step has to follow, but not
	 * at once; 0 when it was the last; a negative errno: the connection is closed after out is
	 * written.
	 */
	int (*step)(void *exchange, struct text *out);

	/*
	 * Always follows a begin that returned 0, also without a last step: the peer is gone.
	 * is_written: the newest reply that another step followed, or should have, is with the
	 * system, whole.
	 */
	void (*end)(void *exchange, bool is_written);
};

struct server_options {
	size_t max_clients;
	size_t max_message;	    /* bytes of one message of a client */
	size_t max_output;	    /* bytes that wait to be written, of all clients together */
	int64_t idle_timeout_ns;    /* without a call or a reply */
	int64_t message_timeout_ns; /* from the first byte of a message to its end */
	int64_t write_timeout_ns;   /* to write one reply */
};

/* What a step may give back; those that wait are asked again after SERVER_TICK_MS. */
enum { SERVER_MORE = 1, SERVER_WAIT = 2, SERVER_TICK_MS = 100 };

enum {
	SERVER_MAX_OUTPUT = 16 * 1024 * 1024,
	SERVER_TIMEOUT_S = 30, /* for half a message, and for a reply to be read */
};

/* Limits and how often each was reached. */
struct server_stats {
	struct server_options options;
	int64_t clients; /* connected now */
	int64_t output;	 /* bytes waiting now */
	int64_t clients_hits;
	int64_t message_hits;
	int64_t output_hits;
	int64_t idle_timeout_hits;
	int64_t message_timeout_hits;
	int64_t write_timeout_hits;
	int64_t shape_hits;	 /* messages nested too deeply or with too many values */
	int64_t bad_messages;	 /* connections closed for what they sent, those included */
	int64_t accept_failures; /* times no connection could be taken for want of something */
};

/* handler and what it refers to must outlive loop_free(). */
int server_new(struct loop *loop, const struct server_options *options,
	       const struct server_handler *handler, struct server **out);

/* Closes everything; the memory goes in a later round of the loop, at the latest in loop_free(). */
struct server *server_free(struct server *server);

/* Once: at a path (see server_socket_listen()), or on an inherited descriptor, which is taken. */
int server_listen(struct server *server, const char *path, const char *group);
int server_listen_fd(struct server *server, int fd);

/* Other limits, from now on; the loop's thread. */
void server_set_limits(struct server *server, size_t max_clients, int64_t idle_timeout_ns);

/* Any thread. */
void server_stats_get(struct server *server, struct server_stats *out);

#endif

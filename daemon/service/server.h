/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_SERVER_H
#define STACKD_DAEMON_SERVICE_SERVER_H

/*
 * Accepts connections, splits what they send into messages, has a handler answer them and writes
 * its replies in order. Bounds what a hostile client can use. Does not look into messages. Used on
 * the loop's thread; the handler runs on threads of the pool, for one connection on one at a time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"
#include "daemon/service/socket.h"

struct loop;
struct server;

/* The functions that answer messages. All are called on a thread of the pool. */
struct server_handler {
	void *userdata;

	/*
	 * Begins an exchange for a message. Returns 0 and *exchange_out, or a negative errno, after
	 * which the connection is closed (-EMSGSIZE: the message is nested too deeply or has too
	 * many values). peer outlives the exchange; message (NUL-ended, len without the NUL) does
	 * not outlive this call.
	 */
	int (*begin)(void *userdata, struct server_peer *peer, const char *message, size_t len,
		     void **exchange_out);

	/*
	 * Appends the next reply to out, if there is one. Returns SERVER_MORE where another step
	 * has to follow as soon as the reply is written; SERVER_WAIT where it has to follow, but
	 * not at once; 0 after the last reply; or a negative errno: then the connection is closed
	 * after out is written.
	 */
	int (*step)(void *exchange, struct text *out);

	/*
	 * Ends an exchange; is called for each that was begun, also where the peer disconnected
	 * before the last step. is_written: the reply of the step before the last one, or of the
	 * newest step where the peer disconnected, was handed to the system as a whole.
	 */
	void (*end)(void *exchange, bool is_written);
};

struct server_options {
	size_t max_clients;
	size_t max_message;	    /* bytes of one message of a client */
	size_t max_output;	    /* bytes that wait to be written, for all clients together */
	int64_t idle_timeout_ns;    /* time without a call or a reply */
	int64_t message_timeout_ns; /* from the first byte of a message to its end */
	int64_t write_timeout_ns;   /* for a client to read one reply */
};

/* Results of a step. A step that returned SERVER_WAIT is repeated after SERVER_TICK_MS. */
enum { SERVER_MORE = 1, SERVER_WAIT = 2, SERVER_TICK_MS = 100 };

enum {
	SERVER_MAX_OUTPUT = 16 * 1024 * 1024,
	SERVER_TIMEOUT_S = 30, /* for the rest of a message, and for a reply to be read */
};

/* The limits, and how often each was reached. */
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
	int64_t bad_messages;	 /* connections closed for what they sent, shape_hits included */
	int64_t accept_failures; /* failed accepts, for lack of descriptors or memory */
};

/* Makes a server that does not listen yet. The handler's userdata must outlive loop_free(). */
int server_new(struct loop *loop, const struct server_options *options,
	       const struct server_handler *handler, struct server **out);

/* Closes all connections. Memory is freed in a later round of the loop, or in loop_free(). */
struct server *server_free(struct server *server);

/*
 * Listens at a path (see server_socket_listen()), or on an inherited descriptor, which the server
 * then owns. One of the two, once.
 */
int server_listen(struct server *server, const char *path, const char *group);
int server_listen_fd(struct server *server, int fd);

/* Changes limits while the server runs. Loop's thread. */
void server_set_limits(struct server *server, size_t max_clients, int64_t idle_timeout_ns);

/* Returns the limits and counters. Any thread. */
void server_stats_get(struct server *server, struct server_stats *out);

#endif

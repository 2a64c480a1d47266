/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_SERVER_H
#define STACKD_DAEMON_SERVICE_SERVER_H

/*
 * Accepts connections, splits the bytes that arrive into messages, lets a handler answer them and
 * writes the replies in order. Limits what a hostile client can use. Does not parse messages. Used
 * on the loop's thread. The handler runs on threads of the pool, but for each connection on only
 * one of them at a time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/base.h"
#include "common/text.h"
#include "daemon/service/socket.h"

struct loop;
struct server;

/* The functions that answer messages. The server calls them on a thread of the pool. */
struct server_handler {
	void *userdata;

	/*
	 * Begins an exchange (a call and its replies) for a message. Returns 0 with *exchange_out,
	 * or a negative errno: the server then closes the connection (-EMSGSIZE: the message is
	 * nested too deeply or has too many values). `peer` stays valid until the exchange has
	 * ended. `message` (len bytes and a NUL) is valid only during this call.
	 */
	int (*begin)(void *userdata, struct server_peer *peer, const char *message, size_t len,
		     void **exchange_out);

	/*
	 * Makes a step of the exchange: appends the next reply to `out`, if there is one. Returns
	 * SERVER_MORE if the next step is to follow as soon as the reply is written, SERVER_WAIT if
	 * it is to follow some time later, or 0 after the last reply. If it returns a negative
	 * errno, the server writes the reply in `out`, if there is one, and closes the connection.
	 */
	int (*step)(void *exchange, struct text *out);

	/*
	 * Ends an exchange. The server calls it for each exchange that was begun, even if the peer
	 * disconnects early. After the last step, the server calls it before it writes the reply of
	 * that step. `is_written` is about the last reply that was written before the call: true if
	 * all of its bytes were handed to the kernel, false if not or if there was no such reply.
	 */
	void (*end)(void *exchange, bool is_written);
};

struct server_options {
	size_t max_clients;
	size_t max_message; /* greatest length of a message in bytes */
	/* Greatest number of bytes that wait to be written to all clients together. */
	size_t max_output;
	/* A client is disconnected after this time without a call or a reply. */
	int64_t idle_timeout_ns;
	/* A client is disconnected if a message is incomplete this long after its first byte. */
	int64_t message_timeout_ns;
	/* A client is disconnected if it has not read a reply within this time. */
	int64_t write_timeout_ns;
};

/*
 * Results of server_handler.step. After SERVER_WAIT, the next step follows within SERVER_TICK_MS.
 */
enum { SERVER_MORE = 1, SERVER_WAIT = 2, SERVER_TICK_MS = 100 };

/* See is_pressed of struct server_peer. */
#define SERVER_PRESSED_NS (2 * NS_PER_S)

enum {
	SERVER_MAX_OUTPUT = 16 * 1024 * 1024,
	/* Seconds that a client has to send a whole message, and to read a reply. */
	SERVER_TIMEOUT_S = 30,
};

/* The limits of a server, and how often each of them was reached (the members *_hits). */
struct server_stats {
	struct server_options options;
	int64_t clients; /* number of clients that are connected now */
	int64_t output;	 /* number of bytes that wait to be written now */
	int64_t clients_hits;
	int64_t dropped_uid; /* whose client was the last in clients_hits; 0 if there was none */
	int64_t message_hits;
	int64_t output_hits;
	int64_t idle_timeout_hits;
	int64_t message_timeout_hits;
	int64_t write_timeout_hits;
	/* Number of messages that were nested too deeply or had too many values. */
	int64_t shape_hits;
	/* Number of connections that were closed for an invalid message; includes shape_hits. */
	int64_t bad_messages;
	/* Number of accepts that failed for lack of descriptors or memory. */
	int64_t accept_failures;
};

/* Makes a server that does not listen yet. The userdata of the handler must outlive loop_free(). */
int server_new(struct loop *loop, const struct server_options *options,
	       const struct server_handler *handler, struct server **out);

/*
 * Closes all connections and removes the socket. The memory of the server is freed in a later round
 * of the loop, or in loop_free().
 */
struct server *server_free(struct server *server);

/*
 * These functions make the server listen. server_listen() makes a socket at a path, see
 * server_socket_listen(). server_listen_fd() takes an inherited descriptor, which the server then
 * owns. Only one of these functions may be called, and only once.
 */
int server_listen(struct server *server, const char *path, const char *group);
int server_listen_fd(struct server *server, int fd);

/* Changes two limits while the server runs. Must be called on the loop's thread. */
void server_set_limits(struct server *server, size_t max_clients, int64_t idle_timeout_ns);

/*
 * Makes the next step of all exchanges that wait (see SERVER_WAIT) soon, without waiting for the
 * next tick. Any thread, but only during a call of a function of the handler.
 */
void server_wake(struct server *server);

/* Returns the limits and counters of the server. Any thread. */
void server_stats_get(struct server *server, struct server_stats *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_CLIENT_H
#define STACKD_DAEMON_SERVICE_CLIENT_H

/*
 * The inside of the server: its state, and the state of one connection. Used on the loop's thread,
 * except where a member says otherwise. Only server.c, accept.c and client.c include this.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <uv.h>

#include "daemon/service/server.h"
#include "proto/frame.h"

enum { READ_SIZE = 64 * 1024 };

struct client;

/* The counters of server_stats. Atomic, as any thread may read them. */
struct counters {
	atomic_int_fast64_t clients;
	atomic_int_fast64_t output;
	atomic_int_fast64_t clients_hits;
	atomic_int_fast64_t message_hits;
	atomic_int_fast64_t output_hits;
	atomic_int_fast64_t idle_timeout_hits;
	atomic_int_fast64_t message_timeout_hits;
	atomic_int_fast64_t write_timeout_hits;
	atomic_int_fast64_t shape_hits;
	atomic_int_fast64_t bad_messages;
	atomic_int_fast64_t accept_failures;
};

struct server {
	uv_poll_t listener; /* polls fd, once it listens */
	uv_timer_t sweep;   /* looks for missed deadlines */
	uv_work_t trim;	    /* gives memory back to the system */
	uv_timer_t tick;    /* runs while a client waits for its next step */
	uv_loop_t *loop;
	struct server_options options;
	struct server_handler handler;
	struct counters counters;
	struct client *clients; /* all that are not being closed, the newest first */
	int users;		/* open handles and clients that refer to this server */
	int fd;			/* the socket that listens; -1: none yet */
	bool is_paused;		/* no connection is accepted until the next sweep */
	uint64_t complained_ns; /* when a failed accept was logged last */
	bool is_trimming;
	size_t moved; /* bytes read and written since memory was given back */
	uint64_t last_id;
	char *path; /* of the socket, removed at the end; NULL for an inherited socket */
	struct stat path_stat;
	char buffer[READ_SIZE]; /* for one read at a time */
};

enum client_state {
	CLIENT_IDLE,	/* waits for a message */
	CLIENT_WORKING, /* a thread of the pool uses message, exchange and out */
	CLIENT_WRITING, /* out is being written */
	CLIENT_WAITING, /* its exchange makes its next step later */
};

struct client {
	uv_pipe_t pipe;
	uv_work_t work;
	uv_write_t write;
	struct server *server;
	struct client *prev;
	struct client *next;
	struct server_peer peer;
	struct frame frame;
	enum client_state state;
	bool is_closing;
	bool is_closed; /* the handle is closed */
	bool is_at_end; /* the peer sends no more, but may read */
	bool is_reading;

	/* The call that is being answered. The pool's while the state is CLIENT_WORKING. */
	char *message;
	size_t message_len;
	void *exchange;
	struct text out;
	bool is_written; /* the newest reply is with the system, whole */
	int result;	 /* what begin() or step() of the handler returned */
	bool is_ending;	 /* the work only ends the exchange */
	size_t writing;	 /* bytes counted as output */

	/* Times of uv_hrtime(). */
	uint64_t active_ns;  /* of the last read or finished step */
	uint64_t partial_ns; /* since when a message is incomplete; 0: none is */
	uint64_t write_ns;   /* since when out is being written */
};

/* Accepts the connections that wait; pauses where descriptors or memory are short. */
void server_accept(struct server *server);

/* Makes a client of a connection. The descriptor is the client's, also on failure. */
int client_open(struct server *server, int fd);

/* Disconnects a client. It is freed later, when nothing uses it any more. */
void client_close(struct client *client);

/* Makes the next step of a client that waits. */
void client_resume(struct client *client);

/* Disconnects a client that has missed a deadline. */
void client_sweep(struct client *client, uint64_t now);

/* Starts the timer that resumes clients that wait. */
void server_tick(struct server *server);

/* Drops a reference of server->users. The last one frees the server. */
void server_put(struct server *server);

#endif

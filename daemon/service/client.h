/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_CLIENT_H
#define STACKD_DAEMON_SERVICE_CLIENT_H

/*
 * The inside of the server: its state and that of one connection. Loop thread, except where a
 * member says otherwise. Only daemon/server*.c include this.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <uv.h>

#include "daemon/service/server.h"
#include "proto/frame.h"

enum { READ_SIZE = 64 * 1024 };

struct client;

/* Atomic, for any thread may ask. */
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
	uv_poll_t listener; /* on fd, once it listens */
	uv_timer_t sweep;
	uv_work_t trim;
	uv_timer_t tick; /* runs while a client waits for its next step */
	uv_loop_t *loop;
	struct server_options options;
	struct server_handler handler;
	struct counters counters;
	struct client *clients; /* that are not being closed */
	int users;		/* open handles and clients that have this server */
	int fd;			/* that listens, -1: not yet */
	bool is_paused;		/* no connections are taken until the next sweep */
	uint64_t complained_ns; /* when a failure to take one was logged last */
	bool is_trimming;
	size_t moved; /* bytes of messages and replies since memory was given back */
	uint64_t last_id;
	char *path; /* what we bound, to be removed; NULL when inherited */
	struct stat path_stat;
	char buffer[READ_SIZE]; /* of the read that is being done */
};

enum client_state {
	CLIENT_IDLE,	/* waits for a message */
	CLIENT_WORKING, /* a thread of the pool has message, exchange and out */
	CLIENT_WRITING, /* the kernel has out */
	CLIENT_WAITING, /* its exchange has nothing to say yet */
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
	bool is_closed; /* its handle */
	bool is_at_end; /* the peer will send no more, but may read */
	bool is_reading;

	/* the exchange, the pool's while working */
	char *message;
	size_t message_len;
	void *exchange;
	struct text out;
	bool is_written; /* the exchange's newest reply */
	int result;	 /* of begin or step */
	bool is_ending;	 /* the work is to end the exchange only */
	size_t writing;	 /* bytes counted as output */

	uint64_t active_ns;  /* last sign of life, uv_hrtime() */
	uint64_t partial_ns; /* since when a message is incomplete, 0: none is */
	uint64_t write_ns;   /* since when out is being written */
};

/* Takes connections that wait, or pauses when there is no room for one in the system. */
void server_accept(struct server *server);

/* Takes fd, also on failure. */
int client_open(struct server *server, int fd);
void client_close(struct client *client);

/* The next step of one that waits. */
void client_resume(struct client *client);

/* Closes those who are over time. */
void client_sweep(struct client *client, uint64_t now);

/* There is a client that waits. */
void server_tick(struct server *server);

/* The last one out frees the server. */
void server_put(struct server *server);

#endif

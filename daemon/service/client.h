/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_CLIENT_H
#define STACKD_DAEMON_SERVICE_CLIENT_H

/*
 * The private structs of the server: its own state, and the state of one connection. They are used
 * on the loop's thread, except where a comment says otherwise. Only client.c, accept.c and server.c
 * include this; each calls only those before it.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <uv.h>

#include "daemon/service/server.h"
#include "proto/frame.h"

enum { READ_SIZE = 64 * 1024 };

struct client;

/*
 * The counters that server_stats_get() returns. They are atomic because any thread may read them.
 */
struct counters {
	atomic_int_fast64_t clients;
	atomic_int_fast64_t output;
	atomic_int_fast64_t clients_hits;
	atomic_int_fast64_t dropped_uid;
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
	uv_poll_t listener; /* watches the listening socket `fd` for new connections */
	uv_timer_t sweep;   /* timer: looks for clients that have missed a deadline */
	uv_work_t trim;	    /* work in the pool that gives free memory back to the system */
	uv_timer_t tick;    /* timer: makes the next step of waiting clients; runs only if there are
			       any */
	uv_async_t wake;    /* makes the next step of waiting clients at once */
	uv_loop_t *loop;
	struct server_options options;
	struct server_handler handler;
	struct counters counters;
	struct client *clients; /* clients that are not being closed, the newest first */
	/*
	 * number of open handles, clients and tasks in the pool that use this server; when it is 0,
	 * the server is freed
	 */
	int users;
	int fd;		/* the socket that listens; -1: the server does not listen yet */
	bool is_paused; /* no connection is accepted until the next run of the timer `sweep` */
	/* uv_hrtime() at the last log line about a failed accept. 0: there was none. */
	uint64_t complained_ns;
	bool is_trimming;
	/* Number of bytes read and written since free memory was last given back to the system. */
	size_t moved;
	/* Path of the socket; the file is removed at the end. NULL: the socket was inherited. */
	char *path;
	struct stat path_stat;
	char buffer[READ_SIZE]; /* buffer for one read from a client */
};

/* In the order in which clients of one user are disconnected to make room for others. */
enum client_state {
	CLIENT_IDLE,	/* no call is being answered; the next message is awaited */
	CLIENT_WRITING, /* the reply in `out` is being written to the peer */
	CLIENT_WAITING, /* the call gets its next step at the next tick of the timer */
	CLIENT_WORKING, /* a thread of the pool works on the client's call */
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
	bool is_closed; /* the handle `pipe` has been closed */
	bool is_at_end; /* the peer will send no more, but may still read replies */
	bool is_reading;

	/*
	 * The call that is being answered. While `state` is CLIENT_WORKING, only a thread of the
	 * pool may use the members from `message` to `result`.
	 */
	char *message;
	size_t message_len;
	void *exchange;
	struct text out;
	bool is_written; /* all bytes of the newest reply were handed to the kernel */
	int result;	 /* the last result of begin() or step() of struct server_handler */
	bool is_ending;	 /* the client is closed; the thread pool is ending its exchange, not
			    answering */
	size_t writing;	 /* how many bytes of `out` are counted in counters.output */

	/* The times below are values of uv_hrtime(), in ns. */
	uint64_t active_ns;  /* when bytes last arrived from the client, or an answer to it ended */
	uint64_t partial_ns; /* start of the time limit for an incomplete message; 0: none is
				incomplete */
	uint64_t write_ns;   /* time at which writing of `out` began */
};

/*
 * Accepts some of the connections that wait in the kernel's queue. If descriptors or memory are
 * short, stops accepting until the next sweep.
 */
void server_accept(struct server *server);

/*
 * Makes a client for an accepted connection. Takes ownership of the descriptor, which is closed on
 * failure.
 */
int client_open(struct server *server, int fd);

/* Disconnects a client. Its memory is freed later, when nothing uses it any more. */
void client_close(struct client *client);

/* Makes the next step of the call of a client in the state CLIENT_WAITING. */
void client_resume(struct client *client);

/* Disconnects the client if it has missed a deadline. `now` is a value of uv_hrtime(). */
void client_sweep(struct client *client, uint64_t now);

/* Defined in client.c. Lowers server->users by one. Frees the server when no user is left. */
void server_put(struct server *server);

#endif

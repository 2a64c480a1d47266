/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_FIXTURE_H
#define STACKD_TESTS_FIXTURE_H

/*
 * The real server and service over made-up queries, on a thread of its own, and a client that
 * speaks to it in plain bytes. Failures end the test that called.
 */

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "daemon/service/server.h"
#include "proto/wire_error.h"
#include "tests/proto/fake_query.h"

struct fixture;

void sleep_ms(int64_t ms);

/* Until a condition holds, but not for ever; the check that follows says what is wrong. */
#define WAIT_FOR(condition)                                       \
	do {                                                      \
		for (int _i = 0; _i < 2000 && !(condition); _i++) \
			sleep_ms(10);                             \
	} while (0)

struct fixture *fixture_start(const struct server_options *options);
void fixture_stop(struct fixture *fixture);  /* fails when an answer was leaked */
struct server_options fixture_options(void); /* the defaults, to be changed */
const char *fixture_path(const struct fixture *fixture);
struct recorder *fixture_recorder(struct fixture *fixture);
struct server_stats fixture_stats(struct fixture *fixture);

struct peer {
	int fd;
	char *data;
	size_t len;
	size_t capacity;
};

void peer_connect(struct peer *peer, const char *path);
void peer_close(struct peer *peer);
void peer_send(struct peer *peer, const char *data, size_t n);
void peer_call(struct peer *peer, const char *json); /* with its NUL */

/* The next reply, checked to be valid JSON and UTF-8; to be put. */
struct json_object *peer_reply(struct peer *peer);

/* Whether the server closed the connection, without another reply; waits for it. */
bool peer_is_closed(struct peer *peer);

/* Whether nothing comes for a while. */
bool peer_is_silent(struct peer *peer, int ms);

/* A member, or with name2 a member of that; it must be there. Borrowed. */
struct json_object *reply_get(struct json_object *reply, const char *name, const char *name2);

/* Puts the reply. */
void reply_is_error(struct json_object *reply, enum wire_error_code error, const char *parameter,
		    const char *value);

#endif

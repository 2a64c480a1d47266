/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_FIXTURE_H
#define STACKD_TESTS_FIXTURE_H

/*
 * Runs the real server and service over a double of daemon/query/, on a thread of its own. Its
 * client sends plain bytes. A failure ends the test.
 */

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "daemon/service/server.h"
#include "proto/wire_error.h"
#include "tests/proto/fake_query.h"

struct fixture;

void sleep_ms(int64_t ms);

/* Waits until a condition holds, up to 20 s. A check after it has to report the failure. */
#define WAIT_FOR(condition)                                       \
	do {                                                      \
		for (int _i = 0; _i < 2000 && !(condition); _i++) \
			sleep_ms(10);                             \
	} while (0)

struct fixture *fixture_start(const struct server_options *options);
void fixture_stop(struct fixture *fixture);  /* fails the test if an answer was leaked */
struct server_options fixture_options(void); /* the defaults, for the test to change */
const char *fixture_path(const struct fixture *fixture);
struct recorder *fixture_recorder(struct fixture *fixture);
struct service *fixture_service(struct fixture *fixture);
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
void peer_call(struct peer *peer, const char *json); /* sends the NUL, too */

/* Reads the next reply and checks that it is JSON in UTF-8. Freed by json_object_put(). */
struct json_object *peer_reply(struct peer *peer);

/* Waits for the connection to end. True if it does, without another reply. */
bool peer_is_closed(struct peer *peer);

/* True if nothing arrives for some milliseconds. */
bool peer_is_silent(struct peer *peer, int ms);

/* Returns a member, or with name2 a member of that member, and fails without it. Borrowed. */
struct json_object *reply_get(struct json_object *reply, const char *name, const char *name2);

/* Checks for an error with a parameter (NULL: any), and calls json_object_put(). */
void reply_is_error(struct json_object *reply, enum wire_error_code error, const char *parameter,
		    const char *value);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long a gateway waits for a server that is slow, yet answers: once for an answer, and not once
 * for each of its queries. Load can only make the server slower still.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "fleet/base/config.h"
#include "fleet/serve/shards.h"

/* The server takes SLOW_US for a query, less than LIMIT_NS, of which two take more. */
#define LIMIT_NS NS_PER_S
enum { SLOW_US = 600000, QUERIES = 3 };

/* A server that answers one query after the other on each connection. */
struct slow {
	int fd;
	char url[64];
	pthread_t thread;
	int n; /* queries that it has taken */
};

/* Answers the queries of one connection. Each arrives at once, as it is short. */
static void answer(struct slow *slow, int fd)
{
	static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1\n";
	char query[4096];

	while (recv(fd, query, sizeof(query), 0) > 0) {
		slow->n++;
		usleep(SLOW_US);
		if (send(fd, reply, sizeof(reply) - 1, MSG_NOSIGNAL) < 0)
			break;
	}
	close(fd);
}

static void *serve(void *argument)
{
	struct slow *slow = argument;
	int fd;

	while ((fd = accept(slow->fd, NULL, NULL)) >= 0)
		answer(slow, fd);
	return NULL;
}

static void slow_start(struct slow *slow)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);

	*slow = (struct slow){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	assert_int_equal(bind(slow->fd, (struct sockaddr *)&address, len), 0);
	assert_int_equal(getsockname(slow->fd, (struct sockaddr *)&address, &len), 0);
	assert_int_equal(listen(slow->fd, 8), 0);
	snprintf(slow->url, sizeof(slow->url), "http://127.0.0.1:%d", ntohs(address.sin_port));
	assert_int_equal(pthread_create(&slow->thread, NULL, serve, slow), 0);
}

static void slow_stop(struct slow *slow)
{
	shutdown(slow->fd, SHUT_RDWR);
	pthread_join(slow->thread, NULL);
	close(slow->fd);
}

static int count(void *user, size_t shard, char **fields, size_t n)
{
	++*(int *)user;
	return 0;
}

static void test_queries_of_an_answer_have_one_limit(void **state)
{
	struct slow slow;
	char *urls[] = { slow.url };
	struct fleet_config config = {
		.url = { .v = urls, .n = 1 },
		.database = (char *)"stackd",
		.connect_timeout_ns = LIMIT_NS,
		.shard_timeout_ns = LIMIT_NS,
	};
	struct shards *shards;
	int rows = 0;

	slow_start(&slow);
	assert_int_equal(shards_new(&config, &shards), 0);
	for (int i = 0; i < QUERIES; i++)
		assert_int_equal(shards_ask(shards, "SELECT 1", count, &rows), 0);
	assert_true(rows < 2);
	assert_int_equal(shards_n_failed(shards), 1);
	assert_non_null(strstr(shards_failure(shards, 0), "did not answer in full within 1"));
	shards_free(shards);
	slow_stop(&slow);
	/* The one that failed was not asked again. */
	assert_true(slow.n < QUERIES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queries_of_an_answer_have_one_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

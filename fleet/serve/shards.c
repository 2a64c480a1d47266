/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/serve/shards.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/duration.h"
#include "fleet/base/clickhouse.h"
#include "fleet/base/config.h"

enum { FAILURE_MAX = 768 };

/* One server, and its part of the call that is being made. */
struct shard {
	struct clickhouse *client; /* NULL: it could not be made */
	const char *url;
	int64_t left_ns; /* of its time for this answer */
	bool has_failed;
	char failure[FAILURE_MAX];
	pthread_t thread;
	bool has_thread;
	struct shards *shards;
	int row_result; /* what `row` returned if it ended the call */
};

struct shards {
	struct shard *v;
	size_t n;
	int64_t timeout_ns;
	/* the call that is being made; `lock` is held while `row` is called */
	pthread_mutex_t lock;
	const char *sql;
	shards_row_fn row;
	void *user;
};

static void shard_fail(struct shard *shard, int r, const char *text)
{
	shard->has_failed = true;
	snprintf(shard->failure, sizeof(shard->failure), "shard %s: %s", shard->url,
		 text && text[0] ? text : strerrordesc_np(-r));
}

int shards_new(const struct fleet_config *config, struct shards **out)
{
	_cleanup_(shards_freep) struct shards *shards = calloc(1, sizeof(*shards));
	struct clickhouse_error error = {};

	if (!shards)
		return -ENOMEM;
	pthread_mutex_init(&shards->lock, NULL);
	shards->timeout_ns = config->shard_timeout_ns;
	shards->v = calloc(config->url.n + 1, sizeof(*shards->v));
	if (!shards->v)
		return -ENOMEM;
	for (; shards->n < config->url.n; shards->n++) {
		struct shard *shard = &shards->v[shards->n];
		struct clickhouse_address address = fleet_config_address(config, shards->n);
		int r;

		shard->shards = shards;
		shard->url = config->url.v[shards->n];
		address.timeout_ns = config->shard_timeout_ns;
		if (address.connect_timeout_ns > config->shard_timeout_ns)
			address.connect_timeout_ns = config->shard_timeout_ns;
		r = clickhouse_new(&address, &shard->client, &error);
		if (r == -ENOMEM)
			return r;
		if (r)
			shard_fail(shard, r, error.text);
	}
	shards_renew(shards);
	*out = TAKE(shards);
	return 0;
}

void shards_renew(struct shards *shards)
{
	for (size_t i = 0; i < shards->n; i++)
		shards->v[i].left_ns = shards->timeout_ns;
}

struct shards *shards_free(struct shards *shards)
{
	size_t i;

	if (!shards)
		return NULL;
	for (i = 0; shards->v && i < shards->n; i++)
		clickhouse_free(shards->v[i].client);
	pthread_mutex_destroy(&shards->lock);
	free(shards->v);
	free(shards);
	return NULL;
}

void shards_freep(struct shards **shards)
{
	*shards = shards_free(*shards);
}

size_t shards_n(const struct shards *shards)
{
	return shards->n;
}

size_t shards_n_failed(const struct shards *shards)
{
	size_t i, n = 0;

	for (i = 0; i < shards->n; i++)
		n += shards->v[i].has_failed;
	return n;
}

const char *shards_failure(const struct shards *shards, size_t shard)
{
	return shards->v[shard].has_failed ? shards->v[shard].failure : NULL;
}

/* Hands a row on, and keeps what the handler returns, to tell its errors from those of the server.
 */
static int on_row(void *user, char **fields, size_t n)
{
	struct shard *shard = user;
	struct shards *shards = shard->shards;

	pthread_mutex_lock(&shards->lock);
	shard->row_result = shards->row(shards->user, (size_t)(shard - shards->v), fields, n);
	pthread_mutex_unlock(&shards->lock);
	return shard->row_result;
}

/* Says why a shard has failed: that its time is over, or what its client says. */
static void shard_fail_call(struct shard *shard, int r, const struct clickhouse_error *error)
{
	char time[DURATION_TEXT_MAX], text[sizeof(time) + 64];

	if (r != -ETIMEDOUT || shard->left_ns >= NS_PER_MS) {
		shard_fail(shard, r, error->text);
		return;
	}
	duration_format(shard->shards->timeout_ns, time);
	snprintf(text, sizeof(text), "it did not answer in full within %s", time);
	shard_fail(shard, r, text);
}

static void *ask(void *argument)
{
	struct shard *shard = argument;
	struct clickhouse_error error = {};
	int64_t began = clock_ns(CLOCK_MONOTONIC);
	int r;

	clickhouse_set_timeout(shard->client, shard->left_ns);
	r = clickhouse_query(shard->client, shard->shards->sql, on_row, shard, &error);
	shard->left_ns -= clock_ns(CLOCK_MONOTONIC) - began;
	if (r && !shard->row_result)
		shard_fail_call(shard, r, &error);
	return NULL;
}

int shards_ask(struct shards *shards, const char *sql, shards_row_fn row, void *user)
{
	size_t i;
	int r = 0;

	shards->sql = sql;
	shards->row = row;
	shards->user = user;
	for (i = 0; i < shards->n; i++) {
		struct shard *shard = &shards->v[i];

		shard->row_result = 0;
		shard->has_thread = false;
		if (shard->has_failed)
			continue;
		/* The last one, or one for which there is no thread, is asked on this thread. */
		if (i + 1 < shards->n)
			shard->has_thread = pthread_create(&shard->thread, NULL, ask, shard) == 0;
		if (!shard->has_thread)
			ask(shard);
	}
	for (i = 0; i < shards->n; i++) {
		if (shards->v[i].has_thread)
			pthread_join(shards->v[i].thread, NULL);
		if (!r)
			r = shards->v[i].row_result;
	}
	return r;
}

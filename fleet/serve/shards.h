/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_SERVE_SHARDS_H
#define STACKD_FLEET_SERVE_SHARDS_H

/*
 * The servers that have the rows of a fleet: each is asked by itself and at the same time as the
 * others, with a time limit of its own, so that one that hangs only makes its hosts missing. The
 * limit is for all that it is asked for one answer: a slow one does not take it once for each
 * query, nor from the time of the others. Used by one thread, which owns it.
 */

#include <stddef.h>

struct fleet_config;
struct shards;

/*
 * Makes the clients of all servers of the settings, which it borrows; asks nothing yet. Returns 0
 * or -ENOMEM. An address that cannot be used counts as a shard that has failed.
 */
int shards_new(const struct fleet_config *config, struct shards **out);
struct shards *shards_free(struct shards *shards);
void shards_freep(struct shards **shards);

/* Begins another answer: those that have not failed have all of their time again. */
void shards_renew(struct shards *shards);

size_t shards_n(const struct shards *shards);

/* Returns how many shards have failed. */
size_t shards_n_failed(const struct shards *shards);

/* Returns why a shard has failed, in one line without passwords; NULL: it has not. */
const char *shards_failure(const struct shards *shards, size_t shard);

/*
 * Handles a row of the answer of one shard, like a clickhouse_row_fn. It is called on other
 * threads, but by one at a time.
 */
typedef int (*shards_row_fn)(void *user, size_t shard, char **fields, size_t n);

/*
 * Asks each shard that has not failed. A shard that does not answer in full has failed from then
 * on: the caller has to forget its rows. Returns 0; or what `row` returned if it ended a call; or
 * -ENOMEM.
 */
int shards_ask(struct shards *shards, const char *sql, shards_row_fn row, void *user);

#endif

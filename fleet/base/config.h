/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_BASE_CONFIG_H
#define STACKD_FLEET_BASE_CONFIG_H

/*
 * The settings of stackd-fleet: from its file, then from options -o SECTION.KEY=VALUE. Main thread.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "fleet/base/clickhouse.h"

/* The words of a setting that is a list. */
struct fleet_words {
	char **v;
	size_t n;
};

/* All strings are malloc'ed. One that was not set and has no default is NULL. */
struct fleet_config {
	/* [server] */
	struct fleet_words url; /* one address for each shard */
	char *database;
	char *user;
	char *password_file;
	char *ca_file;
	char *cert_file;
	char *key_file;
	int64_t connect_timeout_ns;
	int64_t timeout_ns;

	/* [send] */
	char *host;   /* never NULL: the name of this host, if none is set */
	char *socket; /* of the local daemon */
	char *lock_file;
	struct fleet_words probes;
	struct fleet_words tiers;  /* of "5s", "1min", "units" */
	struct fleet_words labels; /* NAME=VALUE */
	uint64_t share;		   /* of the time, in percent, that rows with stacks have to hold */
	uint64_t rows;		   /* but no more than this many rows a window */
	int64_t batch_ns;
	int64_t compare_ns;
	int64_t past_ns; /* how far back missing windows are sent */

	/* [serve] */
	char *listen; /* the socket of the gateway */
	char *group;  /* whose members may ask the gateway */
	int64_t shard_timeout_ns;

	char *password; /* what the file or the credential says; NULL: none */
};

struct fleet_error {
	char text[512];
};

/*
 * Reads the settings: from `path` or, if it is NULL, from the default file if there is one; then
 * from the n overrides "SECTION.KEY=VALUE". Reads the password, too. Returns 0; -EINVAL or another
 * negative errno with *error; or -ENOMEM.
 */
int fleet_config_load(const char *path, char *const *overrides, size_t n, struct fleet_config **out,
		      struct fleet_error *error);
void fleet_config_freep(struct fleet_config **config);

/* Returns the address of a shard. Its strings are borrowed from the config. */
struct clickhouse_address fleet_config_address(const struct fleet_config *config, size_t shard);

/* Prints all settings with their values, as a file that can be read again. */
void fleet_config_dump(const struct fleet_config *config, FILE *out);

#endif

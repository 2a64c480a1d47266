/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "fleet/base/schema.h"
#include "fleet/verb.h"

/* Brings the tables of one server up to date. Prints what it did, or why it could not. */
static int apply(const struct fleet_config *config, size_t shard, bool is_modern)
{
	const struct clickhouse_address address = fleet_config_address(config, shard);
	_cleanup_(clickhouse_freep) struct clickhouse *clickhouse = NULL;
	struct clickhouse_error error = { 0 };
	int from, r;

	r = clickhouse_new(&address, &clickhouse, &error);
	if (r == 0)
		r = schema_apply(clickhouse, is_modern, config->database, &from, &error);
	if (r < 0) {
		fprintf(stderr, "stackd-fleet: %s: %s\n", address.url,
			error.text[0] ? error.text : strerror(-r));
		return FLEET_EXIT_FAILED;
	}
	if (from == SCHEMA_VERSION)
		printf("%s: version %d was there\n", address.url, from);
	else if (from == 0)
		printf("%s: made version %d\n", address.url, SCHEMA_VERSION);
	else
		printf("%s: went from version %d to %d\n", address.url, from, SCHEMA_VERSION);
	return FLEET_EXIT_OK;
}

int cmd_schema(const struct fleet_config *config, const struct fleet_options *options)
{
	int code = FLEET_EXIT_OK;

	if (!options->apply) {
		if (schema_print(options->modern, config->database, stdout) < 0)
			return FLEET_EXIT_FAILED;
		return fleet_output_end();
	}
	for (size_t i = 0; i < config->url.n; i++) {
		int one = apply(config, i, options->modern);

		code = one == FLEET_EXIT_OK ? code : one;
	}
	return code == FLEET_EXIT_OK ? fleet_output_end() : code;
}

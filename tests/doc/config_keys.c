/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prints the key table for check_config.py, one key a line, tab between: section, key, default,
 * range, help. With the argument "dump": what --dump-config prints where there are no files.
 */
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "daemon/config/config.h"
#include "daemon/config/keys.h"
#include "daemon/config/value.h"

static void print_table(void)
{
	char range[128];

	for (size_t i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];

		config_value_range(key, range, sizeof(range));
		printf("%s\t%s\t%s\t%s\t%s\n", key->section, key->key, key->fallback, range,
		       key->help);
	}
}

int main(int argc, char **argv)
{
	_cleanup_(config_freep) struct config *config = NULL;
	const struct config_places nowhere = { 0 };
	struct config_error error;

	if (argc < 2 || strcmp(argv[1], "dump") != 0) {
		print_table();
		return 0;
	}
	if (config_load_places(&nowhere, NULL, 0, &config, &error) < 0) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	config_dump(config, stdout);
	return 0;
}

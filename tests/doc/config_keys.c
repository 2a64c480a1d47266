/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prints the key table for check_config.py, one key per line, with tabs between section, key,
 * default, range, help, and "reload" or "restart". With the argument "dump", prints what
 * --dump-config does where there is no file but the named one, if any.
 *
 * Usage: config_keys [dump [FILE]]
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
		printf("%s\t%s\t%s\t%s\t%s\t%s\n", key->section, key->key, key->fallback, range,
		       key->help, key->is_live ? "reload" : "restart");
	}
}

int main(int argc, char **argv)
{
	_cleanup_(config_freep) struct config *config = NULL;
	const struct config_paths paths = {
		.file = argc > 2 ? argv[2] : NULL,
		.is_file_needed = true,
	};
	struct config_error error;

	if (argc < 2 || strcmp(argv[1], "dump") != 0) {
		print_table();
		return 0;
	}
	if (config_load_from(&paths, NULL, 0, &config, &error) < 0) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	config_dump(config, stdout);
	return 0;
}

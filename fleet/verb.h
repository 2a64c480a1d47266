/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_VERB_H
#define STACKD_FLEET_VERB_H

/* The verbs of stackd-fleet. Main thread. */

#include <stdbool.h>

#include "fleet/base/config.h"

/* Exit codes, as stackd has them. */
enum {
	FLEET_EXIT_OK = 0,
	FLEET_EXIT_FAILED = 1,
	FLEET_EXIT_USAGE = 2,
	FLEET_EXIT_CONFIG = 78,
};

/* What the command line says. */
struct fleet_options {
	const char *config_path; /* NULL: the default */
	char **overrides;	 /* SECTION.KEY=VALUE */
	size_t n_overrides;
	bool apply;  /* of schema */
	bool modern; /* of schema */
	bool once;   /* of send */
};

/* A verb: what it is called, and the function that returns an exit code. */
struct fleet_verb {
	const char *name;
	int (*run)(const struct fleet_config *config, const struct fleet_options *options);
};

/* Writes out what was printed. Returns the exit code, after a message if that fails. */
int fleet_output_end(void);

int cmd_send(const struct fleet_config *config, const struct fleet_options *options);
int cmd_serve(const struct fleet_config *config, const struct fleet_options *options);
int cmd_schema(const struct fleet_config *config, const struct fleet_options *options);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_OPTIONS_H
#define STACKD_DAEMON_OPTIONS_H

/*
 * The command line of stackd: in goes argv, out comes what to do with which configuration.
 * Strings are borrowed from argv. Used by main only.
 */

#include <stddef.h>

enum options_action {
	OPTIONS_RUN,
	OPTIONS_CHECK_CONFIG,
	OPTIONS_DUMP_CONFIG,
	OPTIONS_SERVE_ONLY,
};

struct options {
	enum options_action action;
	const char *config_path; /* NULL: the built-in places */
	char **overrides;	 /* "section.key=value", in the order given; owned */
	size_t n_overrides;
};

/*
 * Returns 0 with *options_out to be given to options_fini(); 1 when there is no more to do (help
 * or version is printed); -EINVAL when argv is wrong, which is said on stderr; -ENOMEM.
 */
int options_parse(int argc, char *argv[], struct options *options_out);
void options_fini(struct options *options);

#endif

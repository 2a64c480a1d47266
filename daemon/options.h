/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_OPTIONS_H
#define STACKD_DAEMON_OPTIONS_H

/*
 * Parses the command line of stackd into an action and the configuration to use. The strings point
 * into argv. Used by main() only.
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
	/* path of the configuration file; NULL: use the files in /etc/stackd */
	const char *config_path;
	/*
	 * strings "section.key=value" from -o, in the order given; options_fini() frees the array
	 */
	char **overrides;
	size_t n_overrides;
};

/*
 * Parses argv. Returns 0 with *options_out, which the caller frees with options_fini(); 1 if help
 * or version was printed and the program should exit; -EINVAL if argv is wrong, after a message on
 * stderr; or -ENOMEM.
 */
int options_parse(int argc, char *argv[], struct options *options_out);
void options_fini(struct options *options);

#endif

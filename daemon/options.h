/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_OPTIONS_H
#define STACKD_DAEMON_OPTIONS_H

/*
 * Parses the command line of stackd: what to do, and with which configuration. The strings are
 * borrowed from argv. Used by main() only.
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
	const char *config_path; /* NULL: the files in /etc/stackd */
	char **overrides;	 /* each "section.key=value", in the order given; owned */
	size_t n_overrides;
};

/*
 * Parses argv. Returns 0 with *options_out, which the caller passes to options_fini() later; 1 when
 * help or version was printed and nothing else is to be done; -EINVAL when argv is wrong, after a
 * message on stderr; -ENOMEM.
 */
int options_parse(int argc, char *argv[], struct options *options_out);
void options_fini(struct options *options);

#endif

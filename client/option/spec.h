/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_OPTION_SPEC_H
#define STACKD_CLIENT_OPTION_SPEC_H

/*
 * A row of the table of options, and the functions that parse the value of an option into a member
 * of struct options. Private to the parser of the command line. Main thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "client/option/options.h"

struct option_spec;
typedef int (*option_set_fn)(struct options *options, const struct option_spec *spec,
			     const char *value);

struct option_spec {
	char letter; /* 0: it has only a long name */
	const char *name;
	const char *value; /* its name in help, or the choices: "a|b"; NULL: it takes none */
	unsigned set;	   /* bits of enum option_set: which verbs take it */
	option_set_fn read;
	size_t offset; /* of the member of struct options that read() fills */
	const char *help;
};

/* Parses n decimal digits. Returns 0, -EINVAL for anything else, -ERANGE if they are too many. */
int option_read_number(const char *text, size_t n, int64_t *out);

/*
 * Each parses the value of one kind of option; value is NULL if the option takes none. Returns 0,
 * or -EINVAL with options->message.
 */
int option_read_flag(struct options *options, const struct option_spec *spec, const char *value);
int option_read_text(struct options *options, const struct option_spec *spec, const char *value);
int option_read_ids(struct options *options, const struct option_spec *spec, const char *value);
int option_read_cpus(struct options *options, const struct option_spec *spec, const char *value);
int option_read_positive(struct options *options, const struct option_spec *spec,
			 const char *value);
int option_read_length(struct options *options, const struct option_spec *spec, const char *value);
int option_read_micros(struct options *options, const struct option_spec *spec, const char *value);
int option_read_states(struct options *options, const struct option_spec *spec, const char *value);
int option_read_top(struct options *options, const struct option_spec *spec, const char *value);
int option_read_choice(struct options *options, const struct option_spec *spec, const char *value);
int option_read_format(struct options *options, const struct option_spec *spec, const char *value);
int option_read_named_format(struct options *options, const struct option_spec *spec,
			     const char *value);

#endif

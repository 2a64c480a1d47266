/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_OPTION_SPEC_H
#define STACKD_CLIENT_OPTION_SPEC_H

/*
 * A row of the table of options, and the functions that parse an option's value into a member of
 * struct options. Used only by the parser of the command line. Main thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "client/option/options.h"

struct option_spec;
typedef int (*option_set_fn)(struct options *options, const struct option_spec *spec,
			     const char *value);

struct option_spec {
	char letter; /* 0: the option has only a long name */
	const char *name;
	/*
	 * The value's name in help, as in "PATH", or the values that are allowed, as in
	 * "total|max". NULL: the option takes no value.
	 */
	const char *value;
	unsigned set; /* the groups of the option: bits of enum option_set */
	option_set_fn read;
	size_t offset; /* offset of the member of struct options that read() fills */
	const char *help;
};

/*
 * Parses n decimal digits. Returns 0, -EINVAL if one is not a digit, -ERANGE if the number is too
 * large.
 */
int option_read_number(const char *text, size_t n, int64_t *out);

/*
 * Each function parses the values of one kind of option. `value` is NULL if the option takes no
 * value. Returns 0, or -EINVAL with a message in options->message.
 */
int option_read_flag(struct options *options, const struct option_spec *spec, const char *value);
int option_read_output(struct options *options, const struct option_spec *spec, const char *value);
int option_read_text(struct options *options, const struct option_spec *spec, const char *value);
int option_read_window(struct options *options, const struct option_spec *spec, const char *value);
int option_read_names(struct options *options, const struct option_spec *spec, const char *value);
int option_read_ids(struct options *options, const struct option_spec *spec, const char *value);
int option_read_cpus(struct options *options, const struct option_spec *spec, const char *value);
int option_read_positive(struct options *options, const struct option_spec *spec,
			 const char *value);
int option_read_range(struct options *options, const struct option_spec *spec, const char *value);
int option_read_each(struct options *options, const struct option_spec *spec, const char *value);
int option_read_length(struct options *options, const struct option_spec *spec, const char *value);
int option_read_micros(struct options *options, const struct option_spec *spec, const char *value);
int option_read_states(struct options *options, const struct option_spec *spec, const char *value);
int option_read_reasons(struct options *options, const struct option_spec *spec, const char *value);
int option_read_size(struct options *options, const struct option_spec *spec, const char *value);
int option_read_top(struct options *options, const struct option_spec *spec, const char *value);
int option_read_choice(struct options *options, const struct option_spec *spec, const char *value);
int option_read_format(struct options *options, const struct option_spec *spec, const char *value);
int option_read_named_format(struct options *options, const struct option_spec *spec,
			     const char *value);

#endif

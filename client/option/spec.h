/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_OPTION_SPEC_H
#define STACKD_CLIENT_OPTION_SPEC_H

/*
 * A row of the table of options, and what reads its values: a word in, a member of struct options
 * out. Inside the parser of the command line only. Main thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "client/option/options.h"

struct option_spec;
typedef int (*option_set_fn)(struct options *options, const struct option_spec *spec,
			     const char *value);

struct option_spec {
	char letter; /* 0: long only */
	const char *name;
	const char *value; /* NULL: takes none */
	unsigned set;
	option_set_fn read;
	size_t offset; /* of the member that read fills */
	const char *help;
};

/* Decimal digits and nothing else; -EINVAL, or -ERANGE. */
int option_read_number(const char *text, size_t n, int64_t *out);

/* 0, or -EINVAL with options->message; value is NULL where the option takes none. */
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

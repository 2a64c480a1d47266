/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_QUANTITY_H
#define STACKD_COMMON_QUANTITY_H

/*
 * Parses and prints numbers with units, like "1h 30min" or "64M": durations and sizes, in options
 * and in settings. The caller passes a table of the units. No state, nothing allocated, any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quantity_unit {
	const char *name;
	int64_t factor;
};

struct quantity_syntax {
	const struct quantity_unit *units;
	size_t n_units;
	int64_t bare_factor; /* a number without a unit is multiplied by this */
	bool has_fractions;  /* numbers such as 1.5 are allowed */
	bool has_spaces;     /* spaces are allowed before a number and before its unit */
};

/*
 * Reads the first n bytes of text. They hold either numbers with units, which are added up, or one
 * number without a unit. A sign is refused. Returns 0; -EINVAL when the text is not of that form,
 * or -ERANGE when the sum does not fit 64 bits, both with *out unchanged.
 */
int quantity_parse(const char *text, size_t n, const struct quantity_syntax *syntax, int64_t *out);

/*
 * Writes the number n to `text`, in the first unit of `syntax` of which n is a whole multiple, so
 * the units should be in the order of their sizes, largest first.
 */
void quantity_print(const struct quantity_syntax *syntax, uint64_t n, char *text, size_t size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/quantity.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BILLION = 1000000000 };

/* The part of a text that has not been read yet. */
struct cursor {
	const char *at;
	const char *end;
};

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\t'))
		c->at++;
}

static bool at_digit(const struct cursor *c)
{
	return c->at < c->end && isdigit((unsigned char)*c->at);
}

/*
 * Reads a number like 1.5. Stores the digits before the point in *whole, and those after the point,
 * as a number of billionths, in *billionths.
 */
static int read_number(struct cursor *c, bool has_fractions, int64_t *whole, int64_t *billionths)
{
	int64_t value = 0, fraction = 0, scale = BILLION / 10;

	if (!at_digit(c))
		return -EINVAL;
	for (; at_digit(c); c->at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *c->at - '0', &value))
			return -ERANGE;
	if (has_fractions && c->at < c->end && *c->at == '.') {
		c->at++;
		if (!at_digit(c))
			return -EINVAL;
		for (; at_digit(c); c->at++, scale /= 10)
			fraction += scale * (*c->at - '0');
	}
	*whole = value;
	*billionths = fraction;
	return 0;
}

/*
 * Reads the name of a unit and sets *factor to the factor of that unit. If there is no name of a
 * unit, sets *factor to 0.
 */
static int read_unit(struct cursor *c, const struct quantity_syntax *syntax, int64_t *factor)
{
	const char *start = c->at;
	size_t i, n;

	while (c->at < c->end && (isalpha((unsigned char)*c->at) || (unsigned char)*c->at >= 0x80))
		c->at++;
	n = (size_t)(c->at - start);
	*factor = 0;
	if (n == 0)
		return 0;
	for (i = 0; i < syntax->n_units; i++) {
		const struct quantity_unit *unit = &syntax->units[i];

		if (strlen(unit->name) == n && memcmp(unit->name, start, n) == 0) {
			*factor = unit->factor;
			return 0;
		}
	}
	return -EINVAL;
}

static int add_term(int64_t whole, int64_t billionths, int64_t factor, int64_t *sum)
{
	int64_t term;

	if (__builtin_mul_overflow(whole, factor, &term) || __builtin_add_overflow(*sum, term, sum))
		return -ERANGE;
	/* factor * billionths may exceed 64 bits when the unit is a minute or more. */
	term = (int64_t)((__int128)factor * billionths / BILLION);
	return __builtin_add_overflow(*sum, term, sum) ? -ERANGE : 0;
}

int quantity_parse(const char *text, size_t n, const struct quantity_syntax *syntax, int64_t *out)
{
	struct cursor c = { text, text + n };
	int64_t whole, billionths, factor, sum = 0;
	size_t terms = 0;
	int r;

	if (syntax->has_spaces)
		skip_blanks(&c);
	do {
		r = read_number(&c, syntax->has_fractions, &whole, &billionths);
		if (r < 0)
			return r;
		if (syntax->has_spaces)
			skip_blanks(&c);
		r = read_unit(&c, syntax, &factor);
		if (r < 0)
			return r;
		if (factor == 0) {
			/*
			 * "5 30" and "1h 30" are refused as ambiguous: a number without a unit must
			 * be alone.
			 */
			if (terms > 0 || c.at < c.end)
				return -EINVAL;
			factor = syntax->bare_factor;
		}
		terms++;
		r = add_term(whole, billionths, factor, &sum);
		if (r < 0)
			return r;
		skip_blanks(&c);
	} while (c.at < c.end);
	*out = sum;
	return 0;
}

void quantity_print(const struct quantity_syntax *syntax, uint64_t n, char *text, size_t size)
{
	size_t i;

	for (i = 0; n && i < syntax->n_units; i++) {
		const struct quantity_unit *unit = &syntax->units[i];

		if (n % (uint64_t)unit->factor == 0) {
			snprintf(text, size, "%" PRIu64 "%s", n / (uint64_t)unit->factor,
				 unit->name);
			return;
		}
	}
	snprintf(text, size, "%" PRIu64, n);
}

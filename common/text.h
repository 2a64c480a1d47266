/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_TEXT_H
#define STACKD_COMMON_TEXT_H

/*
 * A text that grows as it is written. The first failure sticks in `error` and later writes do
 * nothing, so that a writer checks once, at the end. Owned by the caller; one thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

struct text {
	char *data; /* not NUL-ended */
	size_t len;
	size_t capacity;
	size_t limit; /* the most bytes that len may reach, SIZE_MAX for no limit */
	int error;    /* 0, -EMSGSIZE (beyond limit), -ENOMEM, or -EINVAL set by a writer */
	int indent;   /* for JSON: depth of a pretty text, negative for a text on one line */
};

void text_init(struct text *text, size_t limit);
void text_fini(struct text *text);

/* Empties the text and clears the error; memory and limit are kept. */
void text_reset(struct text *text);

/* Append n bytes, a string without its NUL, or a decimal number. */
void text_put(struct text *text, const char *data, size_t n);
void text_put_str(struct text *text, const char *s);
void text_put_int(struct text *text, int64_t value);

#endif

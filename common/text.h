/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_TEXT_H
#define STACKD_COMMON_TEXT_H

/*
 * A growing text that JSON is written to. Values in, valid UTF-8 out. The first failure sticks in
 * `error` and later writes do nothing, so that a writer checks once. Owned by the caller; one
 * thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *data; /* not NUL-ended */
	size_t len;
	size_t capacity;
	size_t limit; /* most bytes, SIZE_MAX for none */
	int error;    /* 0, -EMSGSIZE, -ENOMEM, -EINVAL */
	int indent;   /* depth of a pretty text, negative for one line */
};

void text_init(struct text *text, size_t limit);
void text_fini(struct text *text);

/* Empties it and forgets the error, keeps memory and limit. */
void text_reset(struct text *text);

void text_put(struct text *text, const char *data, size_t n);
void text_put_str(struct text *text, const char *s);

/* A JSON string: escaped, and every byte that is not UTF-8 replaced by U+FFFD. */
void text_put_json_string(struct text *text, const char *s);
void text_put_int(struct text *text, int64_t value);

/* RFC 3339 in the local zone with 0, 3, 6 or 9 digits of a second, as a JSON string. */
void text_put_json_time(struct text *text, int64_t epoch_ns);

/* A line break and the indentation, where the text is pretty. */
void text_put_break(struct text *text);

/* Hands the text over as a NUL-ended malloc'ed string and leaves an empty one; NULL on error. */
char *text_take(struct text *text);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_TEXT_H
#define STACKD_COMMON_TEXT_H

/*
 * A text that grows as it is written. The first failure is kept in `error`, and later writes do
 * nothing, so that a writer needs to check `error` only once, at the end. Owned by the caller; used
 * by one thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

struct text {
	char *data; /* the text, without a NUL at its end */
	size_t len;
	size_t capacity;
	size_t limit; /* greatest value that len may reach; SIZE_MAX: no limit */
	int error;    /* 0, -EMSGSIZE (limit exceeded), -ENOMEM, or -EINVAL set by a writer */
	int indent;   /* for JSON: depth of indentation; negative: the JSON is on one line */
};

void text_init(struct text *text, size_t limit);
void text_fini(struct text *text);

/* Empties the text and clears the error. The memory and the limit are kept. */
void text_reset(struct text *text);

/*
 * text_put() appends n bytes, text_put_str() a string without its NUL, text_put_int() a number in
 * decimal.
 */
void text_put(struct text *text, const char *data, size_t n);
void text_put_str(struct text *text, const char *s);
void text_put_int(struct text *text, int64_t value);

#endif

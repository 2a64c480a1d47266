/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_JSON_TEXT_H
#define STACKD_PROTO_JSON_TEXT_H

/*
 * Writes JSON values to a growing text, without the tree in memory that json-c would need for a
 * reply of many megabytes. As with any text, the first failure sticks in text->error.
 */

#include <stdint.h>

struct text;

/* Appends a JSON string: escaped, and each byte that is not part of UTF-8 replaced by U+FFFD. */
void json_put_string(struct text *text, const char *s);

/* Appends a time as an RFC 3339 string in the local zone, with 0, 3, 6 or 9 digits of a second. */
void json_put_time(struct text *text, int64_t epoch_ns);

/* Appends a line break and the indentation where the text is pretty (text->indent >= 0). */
void json_put_break(struct text *text);

#endif

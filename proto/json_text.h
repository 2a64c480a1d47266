/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_JSON_TEXT_H
#define STACKD_PROTO_JSON_TEXT_H

/*
 * Writes JSON values to a growing text, without the tree in memory that json-c would need for a
 * reply of many megabytes. The first failure is kept in text->error, and later writes do nothing.
 */

#include <stdint.h>

struct text;

/*
 * Appends s as a JSON string, with escapes. Replaces each byte that is not valid UTF-8 by U+FFFD.
 */
void json_put_string(struct text *text, const char *s);

/*
 * Appends a time as an RFC 3339 string in the local zone. The seconds have 0, 3, 6 or 9 decimals.
 */
void json_put_time(struct text *text, int64_t epoch_ns);

/* If the text is pretty-printed (text->indent >= 0), appends a line break and the indentation. */
void json_put_break(struct text *text);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_MESSAGE_READ_H
#define STACKD_PROTO_MESSAGE_READ_H

/*
 * Parses a JSON text from a peer that is not trusted. Stricter than json-c, and with limits. Only
 * proto/ includes this. Any thread.
 */

#include <stddef.h>

struct json_object;

/*
 * Parses a NUL-ended text of len bytes (without the NUL). Returns 0 with an object in *out, which
 * the caller releases with json_object_put(); -EBADMSG unless the text is exactly one JSON object
 * in UTF-8, without a member that is named twice and without a NUL in a string; -EMSGSIZE if the
 * text is nested deeper than max_depth or has more than max_values values; or -ENOMEM.
 */
int message_read(const char *text, size_t len, int max_depth, size_t max_values,
		 struct json_object **out);

#endif

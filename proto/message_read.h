/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_MESSAGE_READ_H
#define STACKD_PROTO_MESSAGE_READ_H

/*
 * Text from a stranger in, a tree of json-c out; stricter than json-c: see the function. The
 * caller owns the tree. Only proto/ includes this.
 */

#include <stddef.h>

struct json_object;

/*
 * text is NUL-ended, len without it. *out is an object, to be put. -EBADMSG when the text is not
 * exactly one JSON object in UTF-8, names a member twice or has a NUL in a string; -EMSGSIZE beyond
 * max_depth or max_values; -ENOMEM.
 */
int message_read(const char *text, size_t len, int max_depth, size_t max_values,
		 struct json_object **out);

#endif

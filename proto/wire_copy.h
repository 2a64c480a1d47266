/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_WIRE_COPY_H
#define STACKD_PROTO_WIRE_COPY_H

/*
 * Copies and examines structs of the wire. Everything that a struct points to is copied, too, into
 * the caller's arena. Any thread.
 */

#include <stdbool.h>

#include "proto/wire.h"

struct arena;

/* Copies a filter to *to. Returns 0, or -ENOMEM with *to undefined. */
int wire_filter_copy(struct arena *arena, const struct wire_filter *from, struct wire_filter *to);

/* True if no member of the filter is set. */
bool wire_filter_is_empty(const struct wire_filter *filter);

#endif

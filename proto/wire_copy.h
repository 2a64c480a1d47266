/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_WIRE_COPY_H
#define STACKD_PROTO_WIRE_COPY_H

/*
 * Copies structs of the wire. Everything that a struct points to is copied, too, into the caller's
 * arena. Any thread.
 */

#include "proto/wire.h"

struct arena;

/* Copies a filter to *to. Returns 0, or -ENOMEM with *to undefined. */
int wire_filter_copy(struct arena *arena, const struct wire_filter *from, struct wire_filter *to);

#endif

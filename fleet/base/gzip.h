/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_BASE_GZIP_H
#define STACKD_FLEET_BASE_GZIP_H

/* Compresses the bodies of requests. No state; any thread. */

#include <stddef.h>

/*
 * Compresses `len` bytes as gzip does, for little CPU time. Stores the result, malloc'ed, in
 * *out. Returns 0 or -ENOMEM.
 */
int gzip_pack(const char *data, size_t len, char **out, size_t *len_out);

#endif

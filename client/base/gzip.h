/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_BASE_GZIP_H
#define STACKD_CLIENT_BASE_GZIP_H

/* A stream that compresses, as gzip does, what is written to it. Used by one thread at a time. */

#include <stdio.h>

/*
 * Returns a stream that writes compressed data to `out`, which stays open when the stream is
 * closed: fclose() writes the end of the data. If a write fails, `out` has its error flag set; the
 * stream does not. The program ends when memory runs out.
 */
FILE *gzip_open(FILE *out);

#endif

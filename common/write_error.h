/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_WRITE_ERROR_H
#define STACKD_COMMON_WRITE_ERROR_H

/* Why writing failed. No state, any thread. */

#include <stdio.h>

/*
 * Writes what the stream's buffer holds. Returns 0, or the negative errno with which this write or
 * an earlier one failed.
 */
int stream_finish(FILE *out);

/*
 * Does this for standard output, and prints to standard error why it failed, as this program.
 * Returns the same.
 */
int stdout_finish(const char *program);

/*
 * Returns the text for an errno, positive or negative, of a write. Names the limit where the
 * kernel's text reads as if the file were to blame.
 */
const char *write_error_text(int r);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_OUTPUT_H
#define STACKD_CLIENT_CALL_OUTPUT_H

/*
 * The stream that answers are printed to: standard output, or a file that takes its name only when
 * it is complete. A failure has been reported on standard error when a function returns. Main
 * thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/base/exit_code.h"

struct options;

struct output {
	FILE *out;
	char *path;	 /* NULL: standard output */
	char *temporary; /* the name until it is complete; NULL: it is written in place */
};

/*
 * Opens the target: NULL for standard output, a file, or a directory with a / at its end. In a
 * directory the file is named by stem, time and suffix: offcpu-20260309T140000.123Z.txt. now is in
 * ns since 1970.
 */
enum exit_code output_open(struct output *output, const char *target, const char *stem,
			   const char *suffix, int64_t now);

/*
 * Writes what is buffered, gives a file its name and closes the stream. Call this or
 * output_discard(), once.
 */
enum exit_code output_close(struct output *output);

/* Closes the stream and removes the unfinished file. */
void output_discard(struct output *output);

#endif

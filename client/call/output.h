/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_OUTPUT_H
#define STACKD_CLIENT_CALL_OUTPUT_H

/*
 * The stream that answers are printed to: standard output, or a file that appears under its name
 * only when it is complete. A function that fails prints a message on standard error before it
 * returns. Main thread.
 */

#include <stdint.h>
#include <stdio.h>

#include "client/base/exit_code.h"

struct options;

struct output {
	FILE *out;
	char *path; /* the name of the file; NULL: standard output */
	/* The file's name until it is complete; NULL: there is no temporary file. */
	char *temporary;
};

/*
 * Opens the target for writing. The target is NULL for standard output, the name of a file, or the
 * name of a directory with a / at its end. In a directory, the file gets the name
 * `stem`-TIME.`suffix`, as in offcpu-20260309T140000.123Z.txt. `now`, in ns since 1970, is the time
 * in that name.
 */
enum exit_code output_open(struct output *output, const char *target, const char *stem,
			   const char *suffix, int64_t now);

/*
 * Replaces output->out by a stream that does not wait long for the reader of standard output, see
 * spool.h. Does nothing for a file.
 */
void output_be_patient(struct output *output);

/*
 * Writes what the buffer of an output holds. The path is that of the output. Returns 0. If this
 * write or an earlier one failed, prints a message that says why, and returns -EIO. Prints no
 * message if the reader of a pipe has exited, as head does.
 */
int output_flush(FILE *out, const char *path);

/*
 * Writes buffered output, gives a file its final name and closes the stream. For each
 * output_open(), call either this function or output_discard(), once.
 */
enum exit_code output_close(struct output *output);

/* Closes the stream and removes the unfinished file. */
void output_discard(struct output *output);

#endif

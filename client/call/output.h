/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_OUTPUT_H
#define STACKD_CLIENT_CALL_OUTPUT_H

/*
 * Where data goes: standard output, or a file that is there whole or not at all. Failures have
 * been reported when a function returns. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/base/exit_code.h"

struct options;

struct output {
	FILE *out;
	char *path;	 /* NULL: standard output */
	char *temporary; /* NULL: written in place */
};

/* stem and suffix make the name in a directory: offcpu-20260309T140000.123Z.txt. */
enum exit_code output_open(struct output *output, const char *target, const char *stem,
			   const char *suffix, int64_t now);

/* Writes out what is left; a file takes its name now. Call it once, unless output_discard(). */
enum exit_code output_close(struct output *output);

/* Leaves nothing behind. */
void output_discard(struct output *output);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_SNAPSHOT_RUN_H
#define STACKD_CLIENT_CALL_SNAPSHOT_RUN_H

/*
 * Snapshots, from the options to what is printed: of one answer, or of several, for the slices of a
 * range (--each) or for several ranges (--range), which come in the order of the options. If it
 * fails, it prints a message on standard error before it returns. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "client/base/exit_code.h"

struct options;

/* Asks the daemon for a snapshot and prints the answer. */
enum exit_code snapshot_run(struct options *options, const char *probe, bool is_stuck);

/*
 * Does what snapshot_run() does. Also sets *threads_out to the number of threads in the answer, or
 * to 0 if there is no answer.
 */
enum exit_code snapshot_run_seen(struct options *options, const char *probe, bool is_stuck,
				 int64_t *threads_out);

enum exit_code slices_run(struct options *options, const char *probe);
enum exit_code ranges_run(struct options *options, const char *probe);

#endif

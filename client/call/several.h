/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_SEVERAL_H
#define STACKD_CLIENT_CALL_SEVERAL_H

/*
 * A snapshot with several answers, from the options to what is printed: of the slices of a range
 * (--each), or of several ranges (--range), which come in the order of the options. If it fails, it
 * prints a message on standard error before it returns. Main thread.
 */

#include "client/base/exit_code.h"

struct options;

enum exit_code slices_run(struct options *options, const char *probe);
enum exit_code ranges_run(struct options *options, const char *probe);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_RANGES_H
#define STACKD_CLIENT_CALL_RANGES_H

/*
 * A snapshot of several ranges (--range), from the options to the printed answers, which come in
 * the order of the options. If it fails, it prints a message on standard error before it returns.
 * Main thread.
 */

#include "client/base/exit_code.h"

struct options;

enum exit_code ranges_run(struct options *options, const char *probe);

#endif

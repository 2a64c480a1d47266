/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_SEVERAL_H
#define STACKD_CLIENT_CALL_SEVERAL_H

/*
 * A snapshot whose range is divided into slices (--each), from the options to the printed answers.
 * If it fails, it prints a message on standard error before it returns. Main thread.
 */

#include "client/base/exit_code.h"

struct options;

enum exit_code slices_run(struct options *options, const char *probe);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_TOP_TOP_H
#define STACKD_CLIENT_TOP_TOP_H

/*
 * The full-screen view of the verb top. Runs until the user quits. Returns an exit code; prints a
 * message if there is no terminal for it. Main thread.
 */

#include "client/base/exit_code.h"

struct options;

enum exit_code top_run(const struct options *options);

#endif

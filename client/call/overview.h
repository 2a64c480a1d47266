/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_OVERVIEW_H
#define STACKD_CLIENT_CALL_OVERVIEW_H

/*
 * Where the time of a host, a process or a unit went, of both probes that are always on: options
 * in, text out. Failures have been reported when it returns. Main thread.
 */

#include "client/base/exit_code.h"

struct options;

enum exit_code overview_run(struct options *options);

#endif

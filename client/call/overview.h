/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_OVERVIEW_H
#define STACKD_CLIENT_CALL_OVERVIEW_H

/*
 * The overview: asks both probes that are always on where the time of a host, a process or a unit
 * went, and prints the answers as one. A failure has been reported when it returns. Main thread.
 */

#include "client/base/exit_code.h"

struct options;

enum exit_code overview_run(struct options *options);

#endif

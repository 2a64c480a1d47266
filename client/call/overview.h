/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_OVERVIEW_H
#define STACKD_CLIENT_CALL_OVERVIEW_H

/*
 * The overview of `stackctl snapshot` without a probe. Asks the probes offcpu, oncpu and iolat
 * where the time of a host, a process or a unit went, and prints the answers as one. If it fails,
 * it prints a message on standard error before it returns. Main thread.
 */

#include "client/base/exit_code.h"

struct options;

enum exit_code overview_run(struct options *options);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_METRICS_H
#define STACKD_CLIENT_RENDER_METRICS_H

/*
 * Prints counters for Prometheus in its text format, version 0.0.4. A write error only sets the
 * stream's error flag. Main thread.
 */

#include <stdio.h>

#include "proto/wire.h"

/* Prints all metrics. Borrows both replies. */
void render_metrics(FILE *out, const struct wire_metrics_reply *metrics,
		    const struct wire_status_reply *status);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_REPORT_TRACE_H
#define STACKD_CLIENT_REPORT_TRACE_H

/*
 * Writes a report as a trace, which https://ui.perfetto.dev opens: averages of each window as
 * counters, stretches without data, and the longest waits and those that are open as slices with
 * their stacks. The program ends when memory runs out. Main thread.
 */

#include <stdio.h>

#include "client/report/data.h"
#include "client/report/page.h"

/* Writes the trace to `out`. A write error sets the stream's error flag. */
void report_trace_write(const struct report_data *data, const struct report_head *head, FILE *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_REPORT_JSON_H
#define STACKD_CLIENT_REPORT_JSON_H

/* Prints the data of a report as JSON, which model.js reads. Main thread. */

#include <stdio.h>

#include "client/report/data.h"
#include "client/report/page.h"

/*
 * Prints the data with the rows for which is_kept is true, by their place in data->rows. The rows
 * of a column that are not kept are one row for each kind of time.
 */
void report_json_print(struct report_data *data, const struct report_head *head,
		       const struct report_cut *cut, const bool *is_kept, FILE *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_REPORT_INTERNAL_H
#define STACKD_CLIENT_REPORT_INTERNAL_H

#include <stdint.h>

#include "client/report/data.h"
#include "proto/wire.h"

/*
 * data.c: returns the node of a row's innermost frame. The outermost one is the thread's name.
 * Stores the number of the string that names the row's function.
 */
uint32_t report_row_node(struct report_data *data, const struct wire_row *row,
			 uint32_t *function_out);

#endif

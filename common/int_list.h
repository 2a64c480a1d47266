/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_INT_LIST_H
#define STACKD_COMMON_INT_LIST_H

/*
 * A list of numbers, such as pids or CPUs. The list borrows the numbers: the code that fills it
 * owns them.
 */

#include <stddef.h>
#include <stdint.h>

struct int_list {
	const int64_t *v;
	size_t n;
};

#endif

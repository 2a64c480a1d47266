/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/pool_name.h"

#include <stdbool.h>

void pool_name(const char *comm, char *name_out, size_t size)
{
	size_t i, n = 0;

	for (i = 0; i + 1 < size && comm[i]; i++) {
		bool is_digit = comm[i] >= '0' && comm[i] <= '9';

		if (!is_digit)
			name_out[n++] = comm[i];
		else if (!n || name_out[n - 1] != '*')
			name_out[n++] = '*';
	}
	name_out[n] = '\0';
}

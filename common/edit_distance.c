/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/edit_distance.h"

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t edit_distance(const char *a, size_t n, const char *b, size_t m)
{
	size_t d[EDIT_DISTANCE_WORD + 1][EDIT_DISTANCE_WORD + 1];

	if (n > EDIT_DISTANCE_WORD || m > EDIT_DISTANCE_WORD)
		return EDIT_DISTANCE_FAR;
	for (size_t i = 0; i <= n; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= m; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= n; i++)
		for (size_t j = 1; j <= m; j++) {
			d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1,
					d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[n][m];
}

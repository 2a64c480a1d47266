/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/option/suggest.h"

#include <stdbool.h>
#include <string.h>

enum { WORD_MAX = 32 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Letters put in, left out, replaced or swapped with their neighbour; both words in their bounds.
 */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
	size_t d[WORD_MAX + 1][WORD_MAX + 1];

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

void suggestion_init(struct suggestion *suggestion, const char *word, size_t length)
{
	/* One wrong letter in three is a slip, more is another word. */
	*suggestion = (struct suggestion){ word, length, NULL, length / 3 + 1 };
}

void suggestion_try(struct suggestion *suggestion, const char *candidate)
{
	size_t n = suggestion->length, m = strlen(candidate), far;
	bool begins = n >= 3 && m > n && strncmp(candidate, suggestion->word, n) == 0;

	if (n < 2 || n > WORD_MAX || m > WORD_MAX)
		return;
	far = begins ? 1 : distance(suggestion->word, n, candidate, m);
	if (far > suggestion->distance || (far == suggestion->distance && suggestion->best))
		return;
	suggestion->best = candidate;
	suggestion->distance = far;
}

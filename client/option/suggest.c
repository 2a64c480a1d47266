/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/option/suggest.h"

#include <stdbool.h>
#include <string.h>

#include "common/edit_distance.h"

void suggestion_init(struct suggestion *suggestion, const char *word, size_t length)
{
	/* Suggest a word only if about a third of its letters or fewer are wrong. */
	*suggestion = (struct suggestion){ word, length, NULL, length / 3 + 1 };
}

void suggestion_try(struct suggestion *suggestion, const char *candidate)
{
	size_t n = suggestion->length, m = strlen(candidate), far;
	bool begins = n >= 3 && m > n && strncmp(candidate, suggestion->word, n) == 0;

	if (n < 2 || n > EDIT_DISTANCE_WORD || m > EDIT_DISTANCE_WORD)
		return;
	far = begins ? 1 : edit_distance(suggestion->word, n, candidate, m);
	if (far > suggestion->distance || (far == suggestion->distance && suggestion->best))
		return;
	suggestion->best = candidate;
	suggestion->distance = far;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_OPTION_SUGGEST_H
#define STACKD_CLIENT_OPTION_SUGGEST_H

/*
 * Finds the known word that is nearest to a word with a spelling mistake. The caller tries each
 * known word in turn. All words are borrowed. Pure functions, any thread.
 */

#include <stddef.h>

struct suggestion {
	const char *word;
	size_t length;	  /* how many characters of `word` are compared */
	const char *best; /* the nearest known word so far; NULL: none is near enough */
	/*
	 * Number of letters to change, add or remove to make `best` from `word`, or 1 if `best`
	 * begins with `word`. While best is NULL, the largest number that a known word may need.
	 */
	size_t distance;
};

void suggestion_init(struct suggestion *suggestion, const char *word, size_t length);
/* Compares the word with a known word, and keeps the known word if it is the nearest so far. */
void suggestion_try(struct suggestion *suggestion, const char *candidate);

#endif

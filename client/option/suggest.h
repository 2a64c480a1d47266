/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_OPTION_SUGGEST_H
#define STACKD_CLIENT_OPTION_SUGGEST_H

/*
 * Finds the word that the user may have meant: the known word that is nearest to an unknown one.
 * Each known word is tried in turn; all words are borrowed. Pure.
 */

#include <stddef.h>

struct suggestion {
	const char *word;
	size_t length;	  /* how many characters of `word` to compare */
	const char *best; /* the nearest word so far; NULL: none is near enough */
	size_t distance;  /* how many changes it takes from `word` to `best` */
};

void suggestion_init(struct suggestion *suggestion, const char *word, size_t length);
/* Compares one known word. */
void suggestion_try(struct suggestion *suggestion, const char *candidate);

#endif

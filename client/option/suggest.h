/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_OPTION_SUGGEST_H
#define STACKD_CLIENT_OPTION_SUGGEST_H

/*
 * What somebody may have meant: in goes a word that is none and, one after the other, those that
 * are; out comes the nearest. Borrows all of them. Pure.
 */

#include <stddef.h>

struct suggestion {
	const char *word;
	size_t length;	  /* of word that counts */
	const char *best; /* NULL: none is near */
	size_t distance;
};

void suggestion_init(struct suggestion *suggestion, const char *word, size_t length);
void suggestion_try(struct suggestion *suggestion, const char *candidate);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_EDIT_DISTANCE_H
#define STACKD_COMMON_EDIT_DISTANCE_H

/*
 * Measures how alike two words are, for messages such as "did you mean ...?". Allocates nothing.
 * Any thread.
 */

#include <stddef.h>

/*
 * A word of more than EDIT_DISTANCE_WORD bytes is not compared: its distance from any other word is
 * EDIT_DISTANCE_FAR.
 */
enum { EDIT_DISTANCE_WORD = 32, EDIT_DISTANCE_FAR = 2 * EDIT_DISTANCE_WORD };

/*
 * Returns the number of typing errors between two words of n and m bytes: letters inserted, left
 * out, replaced, or swapped with their neighbour (the optimal string alignment distance).
 */
size_t edit_distance(const char *a, size_t n, const char *b, size_t m);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_ARRAY_H
#define STACKD_COMMON_ARRAY_H

/*
 * Arrays that grow by half as much again, so that adding n members costs some n copies in all.
 * Header only, no state.
 */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { ARRAY_LEAST = 8 };

/* Makes room for n members of so many bytes at *array. Returns 0, or -ENOMEM with it unchanged. */
static inline int array_grow(void **array, size_t *capacity, size_t n, size_t size)
{
	size_t wanted = *capacity + *capacity / 2;
	void *grown;

	if (n <= *capacity)
		return 0;
	if (wanted < n)
		wanted = n;
	if (wanted < ARRAY_LEAST)
		wanted = ARRAY_LEAST;
	grown = wanted <= SIZE_MAX / size ? realloc(*array, wanted * size) : NULL;
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*capacity = wanted;
	return 0;
}

/*
 * Makes room for n members in all at `array`, a pointer that may be NULL, whose room is counted in
 * the size_t `capacity`. New members are not initialised. 0, or -ENOMEM with both unchanged.
 */
#define array_reserve(array, capacity, n)                                         \
	({                                                                        \
		void *_array = (array);                                           \
		int _r = array_grow(&_array, &(capacity), (n), sizeof(*(array))); \
		if (!_r)                                                          \
			(array) = _array;                                         \
		_r;                                                               \
	})

#endif

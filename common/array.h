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

/* Returns the capacity that an array of this one gets when it must hold n members. */
static inline size_t array_capacity(size_t capacity, size_t n)
{
	size_t wanted = capacity + capacity / 2;

	if (n <= capacity)
		return capacity;
	if (wanted < n)
		wanted = n;
	return wanted < ARRAY_LEAST ? ARRAY_LEAST : wanted;
}

/* Makes room for n members of so many bytes at *array. Returns 0, or -ENOMEM with it unchanged. */
static inline int array_grow(void **array, size_t *capacity, size_t n, size_t size)
{
	size_t wanted = array_capacity(*capacity, n);
	void *grown;

	if (wanted == *capacity)
		return 0;
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_ARRAY_H
#define STACKD_COMMON_ARRAY_H

/*
 * Helpers for arrays that grow. Their capacity grows by half each time, so that adding n members
 * one by one copies each of them only a few times. Header only, no state.
 */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { ARRAY_LEAST = 8 };

/* Returns the new capacity of an array that can hold `capacity` members and has to hold n. */
static inline size_t array_capacity(size_t capacity, size_t n)
{
	size_t wanted = capacity + capacity / 2;

	if (n <= capacity)
		return capacity;
	if (wanted < n)
		wanted = n;
	return wanted < ARRAY_LEAST ? ARRAY_LEAST : wanted;
}

/*
 * Grows *array to hold n members of `size` bytes each. Returns 0, or -ENOMEM with *array unchanged.
 */
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
 * Grows `array`, a pointer that may be NULL, to hold at least n members. `capacity`, a variable of
 * type size_t, is the number of members that the array can hold, and is updated. New members are
 * not initialised. Returns 0, or -ENOMEM with both unchanged.
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

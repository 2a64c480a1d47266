/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_SEARCH_H
#define STACKD_COMMON_SEARCH_H

/* Binary search. Header only, no state. */

#include <stddef.h>

/*
 * Returns how many of the indices 0 to n - 1 the condition, which uses the index i, is true for. It
 * must be true for the first ones, and false for all others. For entries sorted by their start, the
 * last one that begins at or before an address is thus that before
 * SEARCH(n, i, entries[i].start <= address).
 */
#define SEARCH(n, i, condition)                               \
	({                                                    \
		size_t _low = 0, _high = (n);                 \
                                                              \
		while (_low < _high) {                        \
			size_t i = _low + (_high - _low) / 2; \
                                                              \
			if (condition)                        \
				_low = i + 1;                 \
			else                                  \
				_high = i;                    \
		}                                             \
		_low;                                         \
	})

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_PAGES_H
#define STACKD_DAEMON_BASE_PAGES_H

/*
 * Memory in pages of its own, for what is some 10 KiB large and stays for seconds to minutes, such
 * as windows. When malloc() gives such pieces, it leaves holes of a few KiB between the many small
 * ones that stay longer, and too small for the next large piece: a third of the heap was holes
 * after some minutes. No state; any thread.
 */

#include <stddef.h>

/* Returns at least `size` bytes of zeros, NULL when out of memory or if `size` is 0. */
void *pages_new(size_t size);

/* Gives memory of pages_new() back to the kernel; `size` is as it was there. NULL is allowed. */
void *pages_free(void *pages, size_t size);

/* Returns how many bytes pages_new() takes for `size` bytes. */
size_t pages_bytes(size_t size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_POOL_NAME_H
#define STACKD_COMMON_POOL_NAME_H

#include <stddef.h>

/*
 * Copies a thread's name, of at most `size` bytes, with "*" in place of each run of digits: threads
 * of one pool, whose names differ in digits only, have one name then. No state; any thread.
 */
void pool_name(const char *comm, char *name_out, size_t size);

#endif

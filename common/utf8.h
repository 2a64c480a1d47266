/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_UTF8_H
#define STACKD_COMMON_UTF8_H

/* What is UTF-8 (RFC 3629): a pointer into a NUL-ended string in, a length out. Stateless. */

#include <stddef.h>

/* Bytes of the character that s begins with, 0 when that is none. Does not read past a NUL. */
size_t utf8_length(const char *s);

#endif

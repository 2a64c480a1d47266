/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_UTF8_H
#define STACKD_COMMON_UTF8_H

/*
 * Recognises and decodes UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing
 * beyond U+10FFFF. No state: any thread.
 */

#include <stddef.h>
#include <stdint.h>

/* Returns the length in bytes of the character at s, 0 where there is none. Reads up to a NUL. */
size_t utf8_length(const char *s);

/* Stores the character at s as well. *out is unchanged where the length is 0. */
size_t utf8_decode(const char *s, uint32_t *out);

#endif

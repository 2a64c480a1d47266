/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_UTF8_H
#define STACKD_COMMON_UTF8_H

/*
 * Recognises and decodes UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing
 * beyond U+10FFFF. No state: any thread.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the length in bytes of the UTF-8 character at s, or 0 if there is no valid one. Reads no
 * byte after a NUL.
 */
size_t utf8_length(const char *s);

/*
 * Stores the code point of the character at s in *out and returns its length in bytes. If there is
 * no valid character at s, returns 0 and leaves *out unchanged.
 */
size_t utf8_decode(const char *s, uint32_t *out);

/* Returns the text without the byte order mark that some editors put before it. */
char *utf8_skip_mark(char *text);

#endif

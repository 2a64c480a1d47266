/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/utf8.h"

#include <string.h>

size_t utf8_length(const char *string)
{
	const unsigned char *s = (const unsigned char *)string;
	unsigned char low = 0x80, high = 0xbf;
	size_t n;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	/*
	 * After some first bytes, the second byte has a smaller range, which excludes overlong
	 * forms, surrogates, and all characters beyond U+10FFFF.
	 */
	if (s[0] == 0xe0)
		low = 0xa0;
	else if (s[0] == 0xed)
		high = 0x9f;
	else if (s[0] == 0xf0)
		low = 0x90;
	else if (s[0] == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return 0;
	return n;
}

size_t utf8_decode(const char *string, uint32_t *out)
{
	static const unsigned char first_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	const unsigned char *s = (const unsigned char *)string;
	size_t n = utf8_length(string);
	uint32_t c = s[0] & first_bits[n];

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	if (n > 0)
		*out = c;
	return n;
}

char *utf8_skip_mark(char *text)
{
	static const char mark[] = "\xef\xbb\xbf";

	return strncmp(text, mark, strlen(mark)) == 0 ? text + strlen(mark) : text;
}

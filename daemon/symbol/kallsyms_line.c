/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/kallsyms_line.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define NAME_BYTES_MAX 512 /* the kernel's limit of a symbol's length since Linux 6.1 */

/*
 * Parses lower-case hexadecimal digits that end at a blank, and moves *p behind that blank. False
 * if the text has any other form.
 */
static bool take_address(char **p, uint64_t *out)
{
	uint64_t value = 0;
	char *s = *p;

	for (; *s != ' '; s++) {
		if (s - *p >= 16)
			return false;
		if (*s >= '0' && *s <= '9')
			value = value << 4 | (uint64_t)(*s - '0');
		else if (*s >= 'a' && *s <= 'f')
			value = value << 4 | (uint64_t)(*s - 'a' + 10);
		else
			return false;
	}
	if (s == *p)
		return false;
	*p = s + 1;
	*out = value;
	return true;
}

int kallsyms_line_parse(char *text, struct kallsyms_line *out)
{
	size_t n;

	if (!take_address(&text, &out->address) || !text[0] || text[1] != ' ')
		return -EBADMSG;
	out->type = text[0];
	out->name = text + 2;
	out->module = NULL;
	n = strcspn(out->name, "\t\n");
	text += 2 + n;
	if (text[0] == '\t') {
		char *end = strchr(text, ']');

		if (text[1] != '[' || !end)
			return -EBADMSG;
		*end = '\0';
		out->module = text + 2;
	}
	*text = '\0';
	return n && n < NAME_BYTES_MAX ? 0 : -EBADMSG;
}

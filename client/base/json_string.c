/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/base/json_string.h"

void json_print_string(FILE *out, const char *text)
{
	fputc('"', out);
	for (const char *s = text; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (*s == '<')
			fputs("\\u003c", out);
		else
			fputc(*s, out);
	}
	fputc('"', out);
}

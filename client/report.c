/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/report.h"

#include <stdarg.h>
#include <stdio.h>

#include "client/term.h"
#include "common/base.h"

void report(const char *format, ...)
{
	_cleanup_(freep) char *text = NULL, *safe = NULL;
	va_list ap;

	va_start(ap, format);
	text = must_format(format, ap);
	va_end(ap);
	safe = name_escape(text);
	fprintf(stderr, "stackctl: %s\n", safe);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/base/message.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "client/base/term.h"
#include "common/base.h"

static atomic_size_t n_printed;

void print_message(const char *format, ...)
{
	_cleanup_(freep) char *text = NULL, *safe = NULL;
	va_list ap;

	va_start(ap, format);
	text = must_format(format, ap);
	va_end(ap);
	safe = name_escape(text);
	fprintf(stderr, "stackctl: %s\n", safe);
	n_printed++;
}

size_t message_count(void)
{
	return n_printed;
}

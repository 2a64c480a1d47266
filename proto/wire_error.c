/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/wire_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct wire_error_shape *wire_error_shape(enum wire_error_code code)
{
	return code > ERROR_NONE && code < WIRE_ERRORS ? &wire_error_shapes[code] : NULL;
}

const char *wire_error_name(enum wire_error_code code)
{
	const struct wire_error_shape *shape = wire_error_shape(code);

	return shape ? shape->name : "";
}

enum wire_error_code wire_error_code(const char *name)
{
	for (enum wire_error_code code = ERROR_NONE + 1; code < WIRE_ERRORS; code++)
		if (strcmp(wire_error_shapes[code].name, name) == 0)
			return code;
	return ERROR_NONE;
}

int wire_error_set(struct wire_error *error, int r, enum wire_error_code code, const char *what,
		   const char *format, ...)
{
	char *message = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&message, format, args) < 0)
		message = NULL;
	va_end(args);
	*error = (struct wire_error){
		.code = code,
		.what = what ? strdup(what) : NULL,
		.limit = WIRE_ABSENT,
		.message = message,
	};
	return r;
}

void wire_error_clear(struct wire_error *error)
{
	free((char *)error->what);
	free((char *)error->message);
	*error = (struct wire_error){ .limit = WIRE_ABSENT };
}

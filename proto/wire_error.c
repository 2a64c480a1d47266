/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/wire_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"

static const struct wire_error_shape shapes[WIRE_ERRORS] = {
	[ERROR_NO_DATA] = { "io.stackd.NoData", "what", false, true },
	[ERROR_UNKNOWN_PROBE] = { "io.stackd.UnknownProbe", "probe", false, true },
	[ERROR_UNKNOWN_SESSION] = { "io.stackd.UnknownSession", "session", false, true },
	[ERROR_INVALID_FILTER] = { "io.stackd.InvalidFilter", "field", false, true },
	[ERROR_INVALID_TIME] = { "io.stackd.InvalidTime", "field", false, true },
	[ERROR_TOO_MANY_SESSIONS] = { "io.stackd.TooManySessions", "limit", true, true },
	[ERROR_ATTACH_FAILED] = { "io.stackd.AttachFailed", "probe", false, true },
	[ERROR_NOT_SUPPORTED] = { "io.stackd.NotSupported", "what", false, true },
	[ERROR_FAILED] = { "io.stackd.Failed", "method", false, true },
	[ERROR_INTERFACE_NOT_FOUND] = { "org.varlink.service.InterfaceNotFound", "interface", false,
					false },
	[ERROR_METHOD_NOT_FOUND] = { "org.varlink.service.MethodNotFound", "method", false, false },
	[ERROR_METHOD_NOT_IMPLEMENTED] = { "org.varlink.service.MethodNotImplemented", "method",
					   false, false },
	[ERROR_INVALID_PARAMETER] = { "org.varlink.service.InvalidParameter", "parameter", false,
				      false },
	[ERROR_PERMISSION_DENIED] = { "org.varlink.service.PermissionDenied", "group", false,
				      false },
	[ERROR_EXPECTED_MORE] = { "org.varlink.service.ExpectedMore", NULL, false, false },
};

const struct wire_error_shape *wire_error_shape(enum wire_error_code code)
{
	return code > ERROR_NONE && code < WIRE_ERRORS ? &shapes[code] : NULL;
}

const char *wire_error_name(enum wire_error_code code)
{
	const struct wire_error_shape *shape = wire_error_shape(code);

	return shape ? shape->name : "";
}

enum wire_error_code wire_error_code(const char *name)
{
	for (enum wire_error_code code = ERROR_NONE + 1; code < WIRE_ERRORS; code++)
		if (strcmp(shapes[code].name, name) == 0)
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/base/exit_code.h"

#include <errno.h>
#include <stddef.h>

#include "common/base.h"

static const struct {
	enum wire_error_code error;
	enum exit_code code;
} errors[] = {
	{ ERROR_NO_DATA, EXIT_CODE_NO_DATA },
	{ ERROR_UNKNOWN_PROBE, EXIT_CODE_USAGE },
	{ ERROR_UNKNOWN_SESSION, EXIT_CODE_USAGE },
	{ ERROR_INVALID_FILTER, EXIT_CODE_USAGE },
	{ ERROR_INVALID_TIME, EXIT_CODE_USAGE },
	{ ERROR_TOO_MANY_SESSIONS, EXIT_CODE_REFUSED },
	{ ERROR_ATTACH_FAILED, EXIT_CODE_IMPOSSIBLE },
	{ ERROR_BUSY, EXIT_CODE_BUSY },
	{ ERROR_NOT_SUPPORTED, EXIT_CODE_IMPOSSIBLE },
	{ ERROR_FAILED, EXIT_CODE_IO },
	{ ERROR_INVALID_PARAMETER, EXIT_CODE_USAGE },
	{ ERROR_PERMISSION_DENIED, EXIT_CODE_REFUSED },
	/*
	 * This error means that the daemon has another version than stackctl, not that a value is
	 * wrong.
	 */
	{ ERROR_METHOD_NOT_FOUND, EXIT_CODE_IO },
	{ ERROR_METHOD_NOT_IMPLEMENTED, EXIT_CODE_IO },
	{ ERROR_INTERFACE_NOT_FOUND, EXIT_CODE_IO },
	{ ERROR_EXPECTED_MORE, EXIT_CODE_IO },
};

static const struct {
	int error;
	enum exit_code code;
} errnos[] = {
	{ ENOENT, EXIT_CODE_NO_DAEMON },   { ECONNREFUSED, EXIT_CODE_NO_DAEMON },
	{ ENOTSOCK, EXIT_CODE_NO_DAEMON }, { ENOTDIR, EXIT_CODE_NO_DAEMON },
	{ EACCES, EXIT_CODE_REFUSED },	   { EPERM, EXIT_CODE_REFUSED },
	{ ENAMETOOLONG, EXIT_CODE_USAGE }, { EINVAL, EXIT_CODE_USAGE },
};

enum exit_code exit_code_of_error(enum wire_error_code error)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].error == error)
			return errors[i].code;
	return EXIT_CODE_IO;
}

enum exit_code exit_code_of_errno(int r)
{
	for (size_t i = 0; i < ARRAY_SIZE(errnos); i++)
		if (errnos[i].error == -r)
			return errnos[i].code;
	return EXIT_CODE_IO;
}

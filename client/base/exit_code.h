/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_BASE_EXIT_CODE_H
#define STACKD_CLIENT_BASE_EXIT_CODE_H

/*
 * What stackctl's exit code says, and the one table from errors of the wire and of the system
 * to it. Scripts depend on these numbers. Pure.
 */

#include "proto/wire_error.h"

enum exit_code {
	EXIT_CODE_OK = 0,
	EXIT_CODE_USAGE = 1,	  /* bad command or value, or 0 matches */
	EXIT_CODE_NO_DAEMON = 2,  /* nobody listens on the socket */
	EXIT_CODE_REFUSED = 3,	  /* not allowed, or a limit of the daemon's */
	EXIT_CODE_NO_DATA = 4,	  /* no window in range, or the filter saw nobody */
	EXIT_CODE_PARTIAL = 5,	  /* gaps or losses under --strict */
	EXIT_CODE_IMPOSSIBLE = 6, /* not on this kernel, or as the daemon runs */
	EXIT_CODE_IO = 7,	  /* output or connection failed */
};

/* And of status --check, as monitoring plugins have them; each is the first word of its line. */
enum check_code {
	CHECK_OK = 0,
	CHECK_WARNING = 1,  /* it records, but something is lost or wrong */
	CHECK_CRITICAL = 2, /* it does not record, or does not answer */
	CHECK_UNKNOWN = 3,  /* not allowed to ask, or asked in a wrong way */
};

/* Returns the exit code for an error of the wire; EXIT_CODE_IO for ERROR_NONE. */
enum exit_code exit_code_of_error(enum wire_error_code error);

/* The code of a failed connection or call; r is a negative errno. */
enum exit_code exit_code_of_errno(int r);

#endif

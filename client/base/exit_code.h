/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_BASE_EXIT_CODE_H
#define STACKD_CLIENT_BASE_EXIT_CODE_H

/*
 * The exit codes of stackctl, and functions that choose the code for an error that the daemon sent
 * or that a system call returned. Scripts depend on these numbers. Pure functions, any thread.
 */

#include "proto/wire_error.h"

enum exit_code {
	EXIT_CODE_OK = 0,
	EXIT_CODE_USAGE = 1,	 /* a wrong command or value, or a pattern that matches nothing */
	EXIT_CODE_NO_DAEMON = 2, /* no daemon listens on the socket */
	EXIT_CODE_REFUSED = 3,	 /* not allowed, or a limit of the daemon was reached */
	EXIT_CODE_NO_DATA = 4,	 /* no window in the range, or no thread that matches the filter */
	EXIT_CODE_PARTIAL = 5,	 /* --strict was given, and the answer has gaps or losses */
	/*
	 * The kernel lacks what the command needs, or the daemon was started with an option that
	 * excludes it.
	 */
	EXIT_CODE_IMPOSSIBLE = 6,
	EXIT_CODE_IO = 7,    /* the output or the connection failed */
	EXIT_CODE_BUSY = 8,  /* the daemon answers as many calls as it may; a later one may do */
	EXIT_CODE_FOUND = 9, /* --fail was given, and a thread waits that the filter selects */
};

/*
 * The exit codes of `stackctl status --check`, which are those of monitoring plugins. The line that
 * the command prints begins with the same word: "OK", "WARNING" and so on.
 */
enum check_code {
	CHECK_OK = 0,
	CHECK_WARNING = 1,  /* the daemon records, but it has lost data or has another problem */
	CHECK_CRITICAL = 2, /* a probe failed, or the daemon does not answer */
	CHECK_UNKNOWN = 3,  /* the daemon refused to answer */
};

/* Returns the exit code for an error that the daemon sent; EXIT_CODE_IO for ERROR_NONE. */
enum exit_code exit_code_of_error(enum wire_error_code error);

/* Returns the exit code for a connection or call that failed with r, a negative errno. */
enum exit_code exit_code_of_errno(int r);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_EXIT_CODE_H
#define STACKD_DAEMON_EXIT_CODE_H

/*
 * Exit codes of stackd. A service manager is told not to restart after the last two
 * (RestartPreventExitStatus=): trying again changes nothing. Numbers as in sysexits.h.
 */

enum {
	EXIT_USAGE = 1,	     /* the command line is wrong, or any other failure */
	EXIT_PRIVILEGE = 77, /* EX_NOPERM: a capability is missing, or the kernel refuses */
	EXIT_CONFIG = 78,    /* EX_CONFIG */
};

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_EXIT_CODE_H
#define STACKD_DAEMON_EXIT_CODE_H

/*
 * Exit codes of stackd. The systemd unit does not restart the daemon after the last two
 * (RestartPreventExitStatus=), since they would only come again. The numbers are those of
 * sysexits.h.
 */

enum {
	EXIT_USAGE = 1,	     /* the command line is wrong; as EXIT_FAILURE: any other failure */
	EXIT_PRIVILEGE = 77, /* EX_NOPERM: a capability is missing, or the kernel refuses BPF */
	EXIT_CONFIG = 78,    /* EX_CONFIG: the configuration is not valid */
};

#endif

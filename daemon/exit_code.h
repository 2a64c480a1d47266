/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_EXIT_CODE_H
#define STACKD_DAEMON_EXIT_CODE_H

/*
 * Exit codes of stackd. After EXIT_PRIVILEGE and EXIT_CONFIG, whose numbers are from sysexits.h,
 * the systemd unit does not restart the daemon (RestartPreventExitStatus=), because it would only
 * fail again.
 */

enum {
	/* the command line is wrong; equal to EXIT_FAILURE, which stands for any other failure */
	EXIT_USAGE = 1,
	EXIT_PRIVILEGE = 77, /* EX_NOPERM: a capability is missing, or the kernel refuses BPF */
	EXIT_CONFIG = 78,    /* EX_CONFIG: the configuration is not valid */
};

#endif

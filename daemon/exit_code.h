/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_EXIT_CODE_H
#define STACKD_DAEMON_EXIT_CODE_H

/*
 * Exit codes of stackd. EXIT_PRIVILEGE and EXIT_CONFIG are numbers of sysexits.h. If the daemon
 * exits with one of these two, the systemd unit does not restart it (RestartPreventExitStatus=),
 * because it would only fail again.
 */

enum {
	/*
	 * the command line is wrong. EXIT_FAILURE, which stands for all other failures, has the
	 * same number
	 */
	EXIT_USAGE = 1,
	EXIT_PRIVILEGE = 77, /* EX_NOPERM: a capability is missing, or the kernel refuses BPF */
	EXIT_CONFIG = 78,    /* EX_CONFIG: the configuration is not valid */
};

#endif

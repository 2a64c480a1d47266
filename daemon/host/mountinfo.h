/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_MOUNTINFO_H
#define STACKD_DAEMON_HOST_MOUNTINFO_H

/* Parses the lines of /proc/PID/mountinfo. */

enum { MOUNTINFO_WORD = 64 };

struct mountinfo {
	int id;
	unsigned int major, minor;
	char *point;		     /* the mount point, in the root directory of the process */
	char *options;		     /* those of the mount, with commas between them */
	char type[MOUNTINFO_WORD];   /* such as "fuse.sshfs" */
	char source[MOUNTINFO_WORD]; /* such as "/dev/vda1" */
};

/*
 * Parses a line. Returns 0, or -EINVAL if it has another form. mountinfo_fini() frees what is in
 * *out, also after an error.
 */
int mountinfo_parse(const char *line, struct mountinfo *out);
void mountinfo_fini(struct mountinfo *mount);

#endif

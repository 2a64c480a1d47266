/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_REMOTE_MOUNTS_H
#define STACKD_DAEMON_HOST_REMOTE_MOUNTS_H

/*
 * Finds out whether a device is a remote file system: one that another host or a program serves,
 * such as NFS or FUSE, so that reading a file may hang for ever. Reads /proc/PID/mountinfo and does
 * not touch the file system. Any thread; the lock is not held while /proc is read.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct remote_mounts;

/* Makes a table of devices; NULL when out of memory. */
struct remote_mounts *remote_mounts_new(void);
struct remote_mounts *remote_mounts_free(struct remote_mounts *mounts);

/*
 * True if the device is remote. proc_fd is the directory /proc/PID of a process that has mapped a
 * file of the device: the mounts of this process are read if the device is not known or was looked
 * up more than 10 s ago. The devices of the root directory and of stackd itself, and devices that
 * are not mounted, count as not remote.
 */
bool remote_mounts_contain(struct remote_mounts *mounts, int proc_fd, dev_t dev);

/*
 * Records, for the device of each line of `in`, whether it is remote. `in` is a file in the format
 * of mountinfo. Public for tests.
 */
void remote_mounts_read(struct remote_mounts *mounts, FILE *in);

#endif

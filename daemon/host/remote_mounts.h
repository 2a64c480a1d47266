/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_REMOTE_MOUNTS_H
#define STACKD_DAEMON_HOST_REMOTE_MOUNTS_H

/*
 * Knows which devices are file systems whose files another host or a program serves, such as NFS or
 * FUSE: reading one may hang for ever. Answers from mountinfo, without touching the file system.
 * Any thread; the lock is not held while /proc is read.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct remote_mounts;

/* Returns NULL when out of memory. */
struct remote_mounts *remote_mounts_new(void);
struct remote_mounts *remote_mounts_free(struct remote_mounts *mounts);

/*
 * True if the device is remote. proc_fd is the directory in /proc of the process that has a file of
 * it mapped: the mounts of its namespace are read when the device was not looked up for a while.
 * Devices that stackd runs from are never remote, nor are devices that are not mounted.
 */
bool remote_mounts_contain(struct remote_mounts *mounts, int proc_fd, dev_t dev);

/* Reads lines in the format of mountinfo. For tests, besides its own use. */
void remote_mounts_read(struct remote_mounts *mounts, FILE *in);

#endif

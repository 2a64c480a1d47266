/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_REMOTE_MOUNTS_H
#define STACKD_DAEMON_HOST_REMOTE_MOUNTS_H

/*
 * Which devices are file systems whose files another host or a program serves: reading one may
 * hang for good. In goes the device of a mapping and the process that has it, out comes yes or no,
 * told without touching the file system. Any thread; reads /proc without the lock.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct remote_mounts;

/* NULL when out of memory. */
struct remote_mounts *remote_mounts_new(void);
struct remote_mounts *remote_mounts_free(struct remote_mounts *mounts);

/*
 * proc_fd is the process's directory in /proc: its mount namespace is looked at when the device was
 * not for a while. What stackd itself runs from is never remote, nor is what is mounted nowhere.
 */
bool remote_mounts_contain(struct remote_mounts *mounts, int proc_fd, dev_t dev);

/* Takes in lines as of mountinfo. */
void remote_mounts_read(struct remote_mounts *mounts, FILE *in);

#endif

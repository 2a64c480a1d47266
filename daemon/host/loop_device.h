/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_LOOP_DEVICE_H
#define STACKD_DAEMON_HOST_LOOP_DEVICE_H

/*
 * Finds out whether a block device keeps its data in a file (loop device), as one that is encrypted
 * or put together from parts may. Reads sysfs only, never the device. No state; any thread.
 */

#include <stdbool.h>

/*
 * True if the device lies on a loop device, through at most LOOP_LAYERS_MAX other devices, or if
 * there are so many layers or so many devices below it that this cannot be found out. `sys` is the
 * path of sysfs.
 */
bool loop_device_is_below(const char *sys, unsigned int major, unsigned int minor);

/*
 * Limits: the number of layers below the device, as the kernel stacks few of them, and of devices
 * in all layers together.
 */
enum { LOOP_LAYERS_MAX = 8, LOOP_DEVICES_MAX = 256 };

#endif

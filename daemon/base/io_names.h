/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_IO_NAMES_H
#define STACKD_DAEMON_BASE_IO_NAMES_H

/*
 * Words of I/O: system calls by number, operations, layers and kinds of file system, as programs
 * have them and as people say them. Constant; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the programs follow: enum io_op and enum io_call_file by number, n numbers. */
void io_calls_fill(uint8_t *calls, size_t n);

/* "pread64"; NULL for one that is not followed. call: the number plus one. */
const char *io_call_name(uint32_t call);

/* "syscall", "device"; "read", "fsync". NULL for none of them. */
const char *io_layer_name(uint32_t layer);
const char *io_op_name(uint32_t op);

/* The layer or -ENOENT. */
int io_layer_parse(const char *text);

/* Whether text names the operation, or the system call. */
bool io_op_is(const char *text, uint32_t op, uint32_t call);

/* Whether there is such an operation or system call. */
bool io_op_exists(const char *text);

/* "ext4", "pipe"; NULL for one that is not known. */
const char *io_magic_name(uint32_t magic);

/* Whether a device is the disk or a part of it: vda1 of vda, nvme0n1p2 of nvme0n1. */
bool io_device_is(const char *device, const char *disk);

#endif

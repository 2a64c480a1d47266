/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_IO_NAMES_H
#define STACKD_DAEMON_BASE_IO_NAMES_H

/*
 * The names of I/O: system calls by number, operations, layers and file systems, as the BPF
 * programs number them and as people write them. Constant tables; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Fills the table that the BPF programs look system calls up in: for each of n numbers its enum
 * io_op and enum io_call_file, 0 for calls that are not followed.
 */
void io_calls_fill(uint8_t *calls, size_t n);

/*
 * Returns the name of a system call, such as "pread64"; NULL if it is not followed. call: the
 * number plus one.
 */
const char *io_call_name(uint32_t call);

/*
 * Return the name of a layer ("syscall", "device") or an operation ("read", "fsync"); NULL if there
 * is none.
 */
const char *io_layer_name(uint32_t layer);
const char *io_op_name(uint32_t op);

/* Returns the layer of this name, or -ENOENT. */
int io_layer_parse(const char *text);

/* True if text is the name of the operation, or of the system call. */
bool io_op_is(const char *text, uint32_t op, uint32_t call);

/* True if an operation or a system call has this name. */
bool io_op_exists(const char *text);

/*
 * Returns the name of a file system by its magic number, such as "ext4" or "pipe"; NULL if it is
 * not known.
 */
const char *io_magic_name(uint32_t magic);

/* True if a device is the disk or one of its partitions: vda1 of vda, nvme0n1p2 of nvme0n1. */
bool io_device_is(const char *device, const char *disk);

#endif

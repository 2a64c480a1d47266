/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_IO_NAMES_H
#define STACKD_DAEMON_BASE_IO_NAMES_H

/*
 * Translates between names and numbers of I/O: system calls, operations, layers and file systems.
 * The BPF programs use the numbers, people use the names. All tables are constant; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Fills the table in which the BPF programs look up system calls by number. For each system call
 * that is recorded and whose number N is below n, sets calls[N] to its enum io_op combined (|) with
 * its enum io_call_file. The other entries stay 0.
 */
void io_calls_fill(uint8_t *calls, size_t n);

/*
 * Returns the name of a system call, such as "pread64"; NULL if this call is not recorded. `call`
 * is the number of the system call plus one.
 */
const char *io_call_name(uint32_t call);

/*
 * These functions return the name of a layer, such as "syscall", and of an operation, such as
 * "read"; NULL if the number is unknown.
 */
const char *io_layer_name(uint32_t layer);
const char *io_op_name(uint32_t op);

/* Returns the number of the layer with this name, or -ENOENT. */
int io_layer_parse(const char *text);

/*
 * True if `text` is the name of the operation `op`, or of the system call whose number plus one is
 * `call`.
 */
bool io_op_is(const char *text, uint32_t op, uint32_t call);

/* True if `text` is the name of an operation or of a system call. */
bool io_op_exists(const char *text);

/*
 * Returns the name of a file system, such as "ext4" or "pipe", by its magic number; NULL if that is
 * unknown.
 */
const char *io_magic_name(uint32_t magic);

/*
 * True if `device` is the disk itself or one of its partitions: vda or vda1 for the disk vda,
 * nvme0n1p2 for the disk nvme0n1.
 */
bool io_device_is(const char *device, const char *disk);

#endif

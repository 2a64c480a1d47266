/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_DEBUG_FILE_H
#define STACKD_DAEMON_ELF_DEBUG_FILE_H

/*
 * Finds the symbols of a stripped file elsewhere: in its separate debug file, or packed into the
 * file itself. No state, any thread. All of these files may be hostile.
 */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/elf/file.h"

/* True if files on this device must not be touched, because it is remote. */
typedef bool (*debug_file_is_remote_fn)(void *userdata, uint64_t dev);

/*
 * Opens a path with O_PATH in the root directory of another process. Crosses no mount, because one
 * that a program serves may hang, and symbolic links cannot lead outside. Returns an fd or a
 * negative errno.
 */
int elf_open_in_root(int root_fd, const char *path);

/*
 * Takes over path_fd (opened with O_PATH; -1: returns -ENOENT) and opens it for reading if it is a
 * regular file on a device that may be touched. Returns an fd owned by the caller, or -ENOENT.
 */
int elf_open_regular(int path_fd, debug_file_is_remote_fn is_remote, void *userdata);

/*
 * Looks for the debug file of the file at path in the root directory root_fd (-1: not known): by
 * build-id in that root, by the debug link in that root, then by build-id on this host. Opens
 * regular files only. Returns an fd owned by the caller, or -ENOENT. The caller must check with
 * debug_file_is_of() that it belongs to the file.
 */
int debug_file_open(int root_fd, const char *path, const struct elf_file *file,
		    debug_file_is_remote_fn is_remote, void *userdata);

/*
 * True if fd is a debug file of the file: both have the same build-id, or its contents have the
 * checksum that the debug link gives. For the checksum the whole file is read.
 */
bool debug_file_is_of(int fd, const struct elf_file *file);

/*
 * Unpacks the ELF file in .gnu_debugdata; *image_out is owned by the caller. -ENODATA when there is
 * none, -EBADMSG when it is broken, -E2BIG when it exceeds a limit, -ENOMEM.
 */
int debugdata_unpack(const struct elf_source *source, void **image_out, size_t *size_out);

#endif

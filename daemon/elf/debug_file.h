/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_DEBUG_FILE_H
#define STACKD_DAEMON_ELF_DEBUG_FILE_H

/*
 * Where else the names of a stripped file may be: in goes what is known of the file, out come its
 * separate debug file and what is packed into the file itself. Owned by the caller; no state, any
 * thread. All of it may be hostile.
 */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/elf/file.h"

/* Whether files of a device are not to be touched. */
typedef bool (*debug_file_is_remote_fn)(void *userdata, uint64_t dev);

/*
 * Opens a path, O_PATH only, in a root that is not ours: nobody else's mount is crossed, for one
 * that a program serves may hang, and a link leads nowhere outside. An fd or a negative errno.
 */
int elf_open_in_root(int root_fd, const char *path);

/*
 * Opens for reading what path_fd (O_PATH, which it takes; -1: nothing) is, where it is a regular
 * file of a device that may be touched. An fd owned by the caller, -ENOENT.
 */
int elf_open_regular(int path_fd, debug_file_is_remote_fn is_remote, void *userdata);

/*
 * Opens the debug file of the file that is path in the root directory root_fd (-1: none known): by
 * build-id in that root, by its debug link there, by build-id on this host. Only regular files are
 * opened. An fd owned by the caller, -ENOENT. What it is of is yet to be proved, see below.
 */
int debug_file_open(int root_fd, const char *path, const struct elf_file *file,
		    debug_file_is_remote_fn is_remote, void *userdata);

/*
 * Whether fd is a debug file of the file: both have one build-id, or its bytes have the checksum
 * that the file gives, for which all of it is read.
 */
bool debug_file_is_of(int fd, const struct elf_file *file);

/*
 * Unpacks the ELF file in .gnu_debugdata: *image_out is owned by the caller. -ENODATA when there is
 * none, -EBADMSG when it is broken, -E2BIG when it is larger than any limit allows, -ENOMEM.
 */
int debugdata_unpack(const struct elf_source *source, void **image_out, size_t *size_out);

#endif

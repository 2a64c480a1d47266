/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_DEBUG_FILE_H
#define STACKD_DAEMON_ELF_DEBUG_FILE_H

/*
 * Finds the symbols of a stripped ELF file: in its separate debug file, or compressed in its
 * section .gnu_debugdata. No state, any thread. All of these files may be hostile.
 */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/elf/file.h"

/*
 * True if the device is remote (a network or FUSE file system). Files on it must not be opened,
 * because that may hang.
 */
typedef bool (*debug_file_is_remote_fn)(void *userdata, uint64_t dev);

/*
 * Opens a path with O_PATH below root_fd, the root directory of another process. Symbolic links
 * cannot lead outside this root. Does not enter other mounts, because a mount that a program serves
 * may hang. Returns an fd or a negative errno.
 */
int elf_open_in_root(int root_fd, const char *path);

/*
 * Opens the file of path_fd, which was opened with O_PATH, for reading, and closes path_fd. Returns
 * an fd owned by the caller; -ENOENT if path_fd is negative, the file is not a regular file, or its
 * device is remote.
 */
int elf_open_regular(int path_fd, debug_file_is_remote_fn is_remote, void *userdata);

/*
 * Looks for the separate debug file of an ELF file in three places: by build-id in the root
 * directory root_fd; by the debug link in this root directory; by build-id on this host. root_fd is
 * the root directory in which the ELF file has the path `path`, or -1 if it is not known. Opens
 * regular files only. Returns an fd owned by the caller, or -ENOENT. The caller must check with
 * debug_file_is_of() that the debug file belongs to the ELF file.
 */
int debug_file_open(int root_fd, const char *path, const struct elf_file *file,
		    debug_file_is_remote_fn is_remote, void *userdata);

/*
 * True if fd is a descriptor of the separate debug file of the ELF file. The two files then have
 * the same build-id. If one of them has none, the debug file must have the checksum that is in the
 * debug link of the ELF file; to compute it, the whole file is read.
 */
bool debug_file_is_of(int fd, const struct elf_file *file);

/*
 * Uncompresses the ELF file in the section .gnu_debugdata into *image_out, which the caller frees.
 * Returns 0; -ENODATA if there is no such section; -EBADMSG if its data is damaged; -E2BIG if the
 * data or the memory to uncompress it is too large; or -ENOMEM.
 */
int debugdata_unpack(const struct elf_source *source, void **image_out, size_t *size_out);

#endif

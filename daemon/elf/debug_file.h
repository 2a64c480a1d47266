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
#include "daemon/host/remote_mounts.h"

/*
 * Decides whether an open file is the debug file that is looked for, which debug_file_is_of() says.
 * fd stays the caller's.
 */
struct debug_file_choice {
	bool (*is_right)(const void *context, int fd);
	const void *context;
};

/*
 * Looks for the separate debug file of an ELF file in three places: by build-id in the root
 * directory root_fd; by the debug link in this root directory; by build-id on this host. A file
 * that is not the right one, as one of another build, does not end the search. root_fd is the root
 * directory in which the ELF file has the path `path`, or -1 if it is not known. Opens regular
 * files of local file systems only. `view` is that of the process whose root directory root_fd is.
 * Returns an fd owned by the caller, or -ENOENT.
 */
int debug_file_open(struct mount_view *view, int root_fd, const char *path,
		    const struct elf_file *file, const struct debug_file_choice *choice);

/*
 * Opens the separate debug file of an ELF file by build-id on this host, on local file systems
 * only, unless `mounts` is NULL. Returns an fd owned by the caller, or -ENOENT.
 */
int debug_file_open_host(struct remote_mounts *mounts, const struct elf_file *file,
			 const struct debug_file_choice *choice);

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

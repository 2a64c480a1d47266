/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/elf/debug_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <lzma.h>

#include "common/base.h"
#include "daemon/host/open_local.h"

#define DEBUG_DIR	  "/usr/lib/debug"
#define CHECKED_BYTES_MAX INT64_C(0x20000000) /* the largest file whose checksum is computed */
#define READ_BYTES	  (256 * 1024)

static bool build_id_path(const struct elf_file *file, char *path, size_t size)
{
	char hex[2 * ELF_BUILD_ID_MAX + 1];

	if (file->build_id_size < 2)
		return false;
	for (size_t i = 0; i < file->build_id_size; i++)
		snprintf(hex + 2 * i, 3, "%02x", file->build_id[i]);
	return snprintf(path, size, DEBUG_DIR "/.build-id/%.2s/%s.debug", hex, hex + 2) < (int)size;
}

/* Opens a path in a root directory. Returns an fd, or -ENOENT if there is not the right file. */
static int candidate_open(struct mount_view *view, int root_fd, const char *path,
			  const struct debug_file_choice *choice)
{
	int fd = open_local_file(view, root_fd, path);

	if (fd < 0)
		return -ENOENT;
	if (choice->is_right(choice->context, fd))
		return fd;
	close(fd);
	return -ENOENT;
}

/*
 * Opens the file that a debug link names. Looks for it in the directory of the ELF file `path`, in
 * .debug in this directory, and below DEBUG_DIR.
 */
static int link_open(struct mount_view *view, int root_fd, const char *path, const char *name,
		     const struct debug_file_choice *choice)
{
	static const char *const places[][2] = { { "", "/" },
						 { "", "/.debug/" },
						 { DEBUG_DIR, "/" } };
	const char *slash = strrchr(path, '/');
	char at[PATH_MAX];
	int fd = -ENOENT;

	for (size_t i = 0; slash && fd < 0 && i < ARRAY_SIZE(places); i++) {
		if (snprintf(at, sizeof(at), "%s%.*s%s%s", places[i][0], (int)(slash - path), path,
			     places[i][1], name) >= (int)sizeof(at) ||
		    !strcmp(at, path)) /* the link names the ELF file itself: skip it */
			continue;
		fd = candidate_open(view, root_fd, at, choice);
	}
	return fd;
}

int debug_file_open(struct mount_view *view, int root_fd, const char *path,
		    const struct elf_file *file, const struct debug_file_choice *choice)
{
	char by_id[sizeof(DEBUG_DIR) + 2 * ELF_BUILD_ID_MAX + 32];
	int fd = -ENOENT;

	if (root_fd >= 0 && build_id_path(file, by_id, sizeof(by_id)))
		fd = candidate_open(view, root_fd, by_id, choice);
	if (fd < 0 && file->debug_name && root_fd >= 0)
		fd = link_open(view, root_fd, path, file->debug_name, choice);
	return fd < 0 ? debug_file_open_host(view->mounts, file, choice) : fd;
}

int debug_file_open_host(struct remote_mounts *mounts, const struct elf_file *file,
			 const struct debug_file_choice *choice)
{
	char path[sizeof(DEBUG_DIR) + 2 * ELF_BUILD_ID_MAX + 32];
	_cleanup_(closep) int root_fd = -1;
	struct mount_view own;

	if (!build_id_path(file, path, sizeof(path)))
		return -ENOENT;
	root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	own = mount_view_of(mounts, -1);
	return root_fd < 0 ? -ENOENT : candidate_open(&own, root_fd, path, choice);
}

static bool has_checksum(int fd, uint32_t expected)
{
	_cleanup_(freep) uint8_t *buffer = malloc(READ_BYTES);
	uint32_t crc = 0;
	off_t at = 0;
	ssize_t n;

	if (!buffer)
		return false;
	while ((n = pread(fd, buffer, READ_BYTES, at)) > 0) {
		crc = lzma_crc32(buffer, (size_t)n, crc);
		at += n;
		if (at > CHECKED_BYTES_MAX)
			return false;
	}
	return n == 0 && crc == expected;
}

bool debug_file_is_of(int fd, const struct elf_file *file)
{
	_cleanup_(elf_file_fini) struct elf_file debug = { 0 };
	struct elf_source source = { .fd = fd };

	if (elf_file_read(&source, &debug) < 0)
		return false;
	if (file->build_id_size && debug.build_id_size)
		return file->build_id_size == debug.build_id_size &&
		       !memcmp(file->build_id, debug.build_id, file->build_id_size);
	return file->debug_name && has_checksum(fd, file->debug_crc);
}

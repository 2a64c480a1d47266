/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_FILE_STATE_H
#define STACKD_DAEMON_BASE_FILE_STATE_H

/*
 * Identifies the content of a file: if the file is overwritten, its state changes. struct
 * file_state has no padding, so that states can be compared by memcmp(). The order of the members
 * must not change, because hashes of the struct are stored on disk. Header only, no state.
 */

#include <stdint.h>
#include <sys/stat.h>

struct file_state {
	uint64_t dev, inode, size;
	int64_t mtime_ns;
};

static inline struct file_state file_state_of(const struct stat *st)
{
	return (struct file_state){
		.dev = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = (int64_t)st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec,
	};
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/host/file_lock.h"
#include "daemon/host/procfs.h"
#include "daemon/store/internal.h"

/*
 * The bytes of the log's index that SQLite locks, by enum store_lock; see "Write-ahead logging:
 * the file format", section 2.3.
 */
static const struct {
	unsigned int first, last;
} ranges[] = {
	[STORE_LOCK_WRITE] = { 120, 120 },
	[STORE_LOCK_READ] = { 123, 127 },
};

/*
 * True if it is such a lock of the file. On btrfs never, as its files have other devices in
 * /proc/locks than in stat().
 */
static bool is_lock(const struct file_lock *held, const struct stat *index, enum store_lock lock)
{
	return !held->is_waiting && !held->is_flock && held->pid > 0 &&
	       held->inode == index->st_ino && makedev(held->major, held->minor) == index->st_dev &&
	       held->start <= ranges[lock].last && held->end >= ranges[lock].first;
}

/* Returns the process that has the lock, another one than stackd if there is; 0: not known. */
static int32_t owner_find(const struct stat *index, enum store_lock lock)
{
	_cleanup_(fclosep) FILE *locks = fopen("/proc/locks", "re");
	struct file_lock held;
	int32_t owner = 0;
	char line[256];

	while (locks && fgets(line, sizeof(line), locks)) {
		if (!file_lock_parse(line, &held) || !is_lock(&held, index, lock))
			continue;
		owner = held.pid;
		if (owner != getpid())
			break;
	}
	return owner;
}

void store_lock_owner(const struct store *store, enum store_lock lock, char out[LOCK_OWNER_TEXT])
{
	_cleanup_(closep) int fd = -1;
	struct procfs_stat process = {};
	struct stat index;
	char path[PATH_MAX];
	int32_t pid = 0;

	snprintf(path, sizeof(path), "%s-shm", store->path);
	if (stat(path, &index) == 0)
		pid = owner_find(&index, lock);
	if (!pid || pid == getpid()) {
		snprintf(out, LOCK_OWNER_TEXT, "%s", pid ? "a query of stackd" : "another program");
		return;
	}
	fd = procfs_open(pid, &process);
	/* Any user may choose the name, and the log may be a terminal. */
	for (char *c = process.comm; *c; c++)
		*c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
	snprintf(out, LOCK_OWNER_TEXT, "pid %" PRId32 " (%s)", pid, process.comm);
}

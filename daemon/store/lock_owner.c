/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/base.h"
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
 * True if this line of /proc/locks is such a lock of the file. Sets *pid to the process. On btrfs
 * never, as its files have other devices there than in stat().
 */
static bool line_is_lock(const char *line, const struct stat *index, enum store_lock lock,
			 int32_t *pid)
{
	unsigned int major, minor, first, last;
	uint64_t inode;

	return sscanf(line, "%*u: POSIX %*s %*s %" SCNd32 " %x:%x:%" SCNu64 " %u %u", pid, &major,
		      &minor, &inode, &first, &last) == 6 &&
	       inode == index->st_ino && makedev(major, minor) == index->st_dev &&
	       first <= ranges[lock].last && last >= ranges[lock].first;
}

/* Returns the process that has the lock, another one than stackd if there is; 0: not known. */
static int32_t owner_find(const struct stat *index, enum store_lock lock)
{
	_cleanup_(fclosep) FILE *locks = fopen("/proc/locks", "re");
	int32_t pid, owner = 0;
	char line[256];

	while (locks && fgets(line, sizeof(line), locks))
		if (line_is_lock(line, index, lock, &pid) && pid > 0 && owner <= 0)
			owner = pid == getpid() ? -1 : pid;
	return owner < 0 ? getpid() : owner;
}

void store_lock_owner(const struct store *store, enum store_lock lock, char out[LOCK_OWNER_TEXT])
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[4200], comm[32] = "";
	struct stat index;
	int32_t pid = 0;

	snprintf(path, sizeof(path), "%s-shm", store->path);
	if (stat(path, &index) == 0)
		pid = owner_find(&index, lock);
	if (!pid || pid == getpid()) {
		snprintf(out, LOCK_OWNER_TEXT, "%s", pid ? "a query of stackd" : "another program");
		return;
	}
	snprintf(path, sizeof(path), "/proc/%" PRId32 "/comm", pid);
	f = fopen(path, "re");
	if (f && fgets(comm, sizeof(comm), f))
		comm[strcspn(comm, "\n")] = '\0';
	/* Any user may choose the name, and the log may be a terminal. */
	for (char *c = comm; *c; c++)
		*c = (unsigned char)*c < ' ' || *c == 127 ? '?' : *c;
	snprintf(out, LOCK_OWNER_TEXT, "pid %" PRId32 " (%s)", pid, comm);
}

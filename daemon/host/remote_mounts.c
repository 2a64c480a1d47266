/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/remote_mounts.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "common/base.h"

/*
 * Time for which the table remembers whether a device is remote. Later, another file system may
 * have the same device number.
 */
#define KEEP_NS (10 * NS_PER_S)

enum { DEVICES_MAX = 256, OWN = 2 };

struct device {
	dev_t dev;
	bool is_remote;
	int64_t seen_ns;
};

struct remote_mounts {
	pthread_mutex_t lock;
	struct device devices[DEVICES_MAX];
	size_t n;
	dev_t own[OWN];
};

static bool type_is_remote(const char *type)
{
	static const char *const types[] = {
		"afs",	     "ceph",   "cifs", "coda", "fuse",	   "fuseblk",
		"glusterfs", "lustre", "nfs",  "nfs4", "orangefs", "smb3",
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strcmp(type, types[i]) == 0)
			return true;
	return strncmp(type, "fuse.", 5) == 0;
}

struct remote_mounts *remote_mounts_new(void)
{
	static const char *const own[OWN] = { "/", "/proc/self/exe" };
	struct remote_mounts *mounts = calloc(1, sizeof(*mounts));
	struct stat st;

	if (!mounts)
		return NULL;
	pthread_mutex_init(&mounts->lock, NULL);
	for (size_t i = 0; i < OWN; i++)
		if (stat(own[i], &st) == 0)
			mounts->own[i] = st.st_dev;
	return mounts;
}

struct remote_mounts *remote_mounts_free(struct remote_mounts *mounts)
{
	if (!mounts)
		return NULL;
	pthread_mutex_destroy(&mounts->lock);
	free(mounts);
	return NULL;
}

static struct device *device_find(struct remote_mounts *mounts, dev_t dev)
{
	for (size_t i = 0; i < mounts->n; i++)
		if (mounts->devices[i].dev == dev)
			return &mounts->devices[i];
	return NULL;
}

static void device_set(struct remote_mounts *mounts, dev_t dev, bool is_remote)
{
	struct device *device;

	pthread_mutex_lock(&mounts->lock);
	device = device_find(mounts, dev);
	if (!device) {
		if (mounts->n == DEVICES_MAX)
			mounts->n = 0;
		device = &mounts->devices[mounts->n++];
	}
	*device = (struct device){ dev, is_remote, clock_ns(CLOCK_MONOTONIC) };
	pthread_mutex_unlock(&mounts->lock);
}

/*
 * Looks up whether a device is remote, and stores the answer in *is_remote_out. Returns false if
 * this is not known, or was found out more than KEEP_NS ago.
 */
static bool device_get(struct remote_mounts *mounts, dev_t dev, bool *is_remote_out)
{
	const struct device *device;
	bool has;

	pthread_mutex_lock(&mounts->lock);
	device = device_find(mounts, dev);
	has = device && clock_ns(CLOCK_MONOTONIC) - device->seen_ns < KEEP_NS;
	if (has)
		*is_remote_out = device->is_remote;
	pthread_mutex_unlock(&mounts->lock);
	return has;
}

/*
 * Each line is like "36 35 98:0 /root /mount options shared:1 - type source options". A blank in a
 * name is written as an octal escape.
 */
void remote_mounts_read(struct remote_mounts *mounts, FILE *in)
{
	_cleanup_(freep) char *line = NULL;
	unsigned int major, minor;
	size_t size = 0;
	char type[64];
	char *end;

	while (getline(&line, &size, in) > 0) {
		end = strstr(line, " - ");
		if (end && sscanf(line, "%*d %*d %u:%u", &major, &minor) == 2 &&
		    sscanf(end, " - %63s", type) == 1)
			device_set(mounts, makedev(major, minor), type_is_remote(type));
	}
}

bool remote_mounts_contain(struct remote_mounts *mounts, int proc_fd, dev_t dev)
{
	_cleanup_(fclosep) FILE *in = NULL;
	bool is_remote = false;
	int fd;

	for (size_t i = 0; i < OWN; i++)
		if (mounts->own[i] == dev)
			return false;
	if (device_get(mounts, dev, &is_remote))
		return is_remote;
	fd = openat(proc_fd, "mountinfo", O_RDONLY | O_CLOEXEC);
	in = fd < 0 ? NULL : fdopen(fd, "re");
	if (fd >= 0 && !in)
		close(fd);
	if (in)
		remote_mounts_read(mounts, in);
	if (!device_get(mounts, dev, &is_remote))
		device_set(mounts, dev, false);
	return is_remote;
}

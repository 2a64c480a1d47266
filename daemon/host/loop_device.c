/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/loop_device.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"

struct search {
	bool is_found;	    /* a loop device, or more than could be looked at */
	unsigned n_devices; /* number of devices that were looked at */
};

static void slaves_search(struct search *search, int parent_fd, const char *name,
			  unsigned int depth);

/* Looks at one device in a directory of slaves, and at the devices below it. */
static void device_search(struct search *search, int slaves_fd, const char *name,
			  unsigned int depth)
{
	char slaves[sizeof("/slaves") + NAME_MAX];

	search->is_found = !strncmp(name, "loop", strlen("loop")) || depth == LOOP_LAYERS_MAX ||
			   ++search->n_devices > LOOP_DEVICES_MAX;
	snprintf(slaves, sizeof(slaves), "%s/slaves", name);
	if (!search->is_found)
		slaves_search(search, slaves_fd, slaves, depth + 1);
}

/*
 * Looks at all devices in the directory `name` of parent_fd. Devices without layers below them,
 * such as partitions, have no such directory, or an empty one.
 */
static void slaves_search(struct search *search, int parent_fd, const char *name,
			  unsigned int depth)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		closep(&fd);
		return;
	}
	while (!search->is_found && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			device_search(search, fd, entry->d_name, depth);
	closedir(dir);
}

bool loop_device_is_below(const char *sys, unsigned int major, unsigned int minor)
{
	struct search search = { 0 };
	char path[256];

	snprintf(path, sizeof(path), "%s/dev/block/%u:%u/slaves", sys, major, minor);
	slaves_search(&search, AT_FDCWD, path, 0);
	return search.is_found;
}

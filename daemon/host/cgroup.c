/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base.h"

int cgroup_mount(char *path, size_t size)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[1024], root[512], at[512];
	bool is_whole = false;
	int r = -ENOENT;

	while (f && !is_whole && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*u %*u %*u:%*u %511s %511s", root, at) != 2 ||
		    !strstr(line, " - cgroup2 "))
			continue;
		/* A part of the tree may be mounted, too, also before the whole of it. */
		is_whole = strcmp(root, "/") == 0;
		if (r || is_whole)
			snprintf(path, size, "%s", at);
		r = 0;
	}
	return r;
}

uint64_t cgroup_root(void)
{
	char path[CGROUP_PATH_MAX];
	struct stat st;

	if (cgroup_mount(path, sizeof(path)) || stat(path, &st) < 0)
		return 0;
	return st.st_ino;
}

/*
 * Searches the directory `path`, and all directories below it, for the control group whose
 * directory has the inode number `id`. Appends the rest of the group's path to `path`, which has
 * room for `size` bytes and is n bytes long.
 */
static int find_below(uint64_t id, char *path, size_t size, size_t n, int depth)
{
	DIR *dir = depth < CGROUP_DEPTH_MAX ? opendir(path) : NULL;
	struct dirent *entry;
	int r = -ENOENT;

	while (dir && r && (entry = readdir(dir))) {
		const size_t length = strlen(entry->d_name);

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || n + length + 2 > size)
			continue;
		path[n] = '/';
		memcpy(path + n + 1, entry->d_name, length + 1);
		r = entry->d_ino == id ? 0 : find_below(id, path, size, n + length + 1, depth + 1);
	}
	if (dir)
		closedir(dir);
	return r;
}

int cgroup_path(uint64_t id, char *out, size_t size)
{
	char path[CGROUP_PATH_MAX];
	size_t n;
	int r = cgroup_mount(path, sizeof(path));

	if (r)
		return r;
	n = strlen(path);
	r = find_below(id, path, sizeof(path), n, 0);
	if (r || strlen(path + n) >= size)
		return r ? r : -ENAMETOOLONG;
	strcpy(out, path + n);
	return 0;
}

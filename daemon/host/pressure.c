/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/pressure.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/base.h"
#include "daemon/host/cgroup.h"

static const char *const names[PRESSURE_N] = {
	[PRESSURE_CPU] = "cpu",
	[PRESSURE_IO] = "io",
	[PRESSURE_MEMORY] = "memory",
};

/*
 * Reads the total at the end of the line that begins with this word, and converts it from us to ns.
 */
static int total_parse(const char *text, const char *word, uint64_t *out_ns)
{
	const char *line = strstr(text, word), *total = line ? strstr(line, "total=") : NULL;
	const char *end = line ? strchr(line, '\n') : NULL;
	uint64_t us;

	if (!line)
		return -ENOENT;
	if (!total || (end && total > end) || sscanf(total, "total=%" SCNu64, &us) != 1)
		return -EBADMSG;
	*out_ns = us * NS_PER_US;
	return 0;
}

int pressure_parse(const char *text, uint64_t *some_ns, uint64_t *full_ns)
{
	uint64_t some, full = 0;
	int r;

	if (total_parse(text, "some ", &some))
		return -EBADMSG;
	r = total_parse(text, "full ", &full);
	if (r && r != -ENOENT)
		return r;
	*some_ns = some;
	*full_ns = full;
	return 0;
}

static int file_read(int dir_fd, const char *name, char *text, size_t size)
{
	_cleanup_(closep) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	return 0;
}

int pressure_read(int dir_fd, const char *suffix, struct pressure *out)
{
	struct pressure pressure = {};
	char name[64], text[256];
	int i, r = 0;

	for (i = 0; i < PRESSURE_N && !r; i++) {
		snprintf(name, sizeof(name), "%s%s", names[i], suffix);
		r = file_read(dir_fd, name, text, sizeof(text));
		if (!r)
			r = pressure_parse(text, &pressure.some_ns[i], &pressure.full_ns[i]);
	}
	if (!r)
		*out = pressure;
	return r;
}

static bool is_slice(const char *name)
{
	const size_t n = strlen(name), suffix = strlen(".slice");

	return n > suffix && strcmp(name + n - suffix, ".slice") == 0;
}

/* Reads the pressure of one unit and appends it. */
static int unit_add(struct pressure_units *units, int dir_fd, const char *path, uint64_t id)
{
	struct pressure totals;
	char *copy;

	if (pressure_read(dir_fd, ".pressure", &totals)) {
		units->unreadable++;
		return 0;
	}
	copy = strdup(path);
	if (!copy || array_reserve(units->v, units->capacity, units->n + 1)) {
		free(copy);
		return -ENOMEM;
	}
	units->v[units->n++] = (struct pressure_unit){ .id = id, .path = copy, .totals = totals };
	return 0;
}

static int slice_read(DIR *slice, char *path, size_t n, size_t max, int depth,
		      struct pressure_units *units);

/*
 * Reads the control group with this name in a slice: its pressure if it is a unit, else the units
 * in it. A group that was removed meanwhile is left out. `path` is the path of the slice, n its
 * length.
 */
static int group_read(int slice_fd, const struct dirent *entry, char *path, size_t n, size_t max,
		      int depth, struct pressure_units *units)
{
	const size_t length = strlen(entry->d_name);
	DIR *slice = NULL;
	int fd, r;

	if (n + length + 2 > CGROUP_PATH_MAX)
		return 0;
	if (!is_slice(entry->d_name) && units->n >= max) {
		units->beyond++;
		return 0;
	}
	fd = openat(slice_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	path[n] = '/';
	memcpy(path + n + 1, entry->d_name, length + 1);
	if (!is_slice(entry->d_name)) {
		r = unit_add(units, fd, path, entry->d_ino);
	} else {
		slice = depth < CGROUP_DEPTH_MAX ? fdopendir(fd) : NULL;
		r = slice ? slice_read(slice, path, n + length + 1, max, depth + 1, units) : 0;
	}
	path[n] = '\0';
	if (slice)
		closedir(slice);
	else
		close(fd);
	return r;
}

static int slice_read(DIR *slice, char *path, size_t n, size_t max, int depth,
		      struct pressure_units *units)
{
	struct dirent *entry;
	int r = 0;

	while (!r && (entry = readdir(slice)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			r = group_read(dirfd(slice), entry, path, n, max, depth, units);
	return r;
}

static int compare_units(const void *a, const void *b)
{
	const struct pressure_unit *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int pressure_read_units(const char *mount, size_t max, struct pressure_units *out)
{
	char path[CGROUP_PATH_MAX] = "";
	DIR *dir;
	int r;

	*out = (struct pressure_units){};
	dir = opendir(mount);
	if (!dir)
		return -errno;
	r = slice_read(dir, path, 0, max, 0, out);
	closedir(dir);
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), compare_units);
	return r;
}

void pressure_units_fini(struct pressure_units *units)
{
	while (units->n)
		free(units->v[--units->n].path);
	free(units->v);
	*units = (struct pressure_units){};
}

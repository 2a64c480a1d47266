/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/process/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <linux/openat2.h>

#include "common/array.h"
#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/host/open_file.h"

#define STATUS_BYTES 8192
#define LINE_BYTES   4096 /* longer lines are truncated; real lines have a few hundred bytes */

struct function {
	uint64_t start;
	uint32_t size;
	uint32_t name; /* offset of the name in perf_map.text; the later a function was written
			  to the file, the higher this offset */
};

struct perf_map {
	atomic_uint refs;
	bool is_truncated;
	struct function *functions; /* sorted by start address, without overlaps */
	size_t n, functions_capacity;
	char *text;
	size_t text_size, text_capacity;
	size_t bytes;  /* memory of this map; the variable `memory` has the sum over all maps */
	size_t read;   /* number of bytes of the file that were read, up to the end of the last
			  whole line */
	size_t last_n; /* length of the last line that was read; 0: it was too long and was
			  truncated */
	uint64_t last_hash;
};

static atomic_size_t memory;

size_t perf_maps_bytes(void)
{
	return atomic_load(&memory);
}

/* The user ids of a process, and its pid in its own pid namespace. */
struct identity {
	uint32_t uids[4]; /* real, effective, saved and file-system user id */
	int32_t pid;
};

static int identity_read(int proc_fd, struct identity *out)
{
	_cleanup_(closep) int fd = openat(proc_fd, "status", O_RDONLY | O_CLOEXEC);
	char text[STATUS_BYTES], *line, *rest = NULL, *last;
	struct identity id = { 0 };
	bool has_uids = false;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (sscanf(line, "Uid: %" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu32, &id.uids[0],
			   &id.uids[1], &id.uids[2], &id.uids[3]) == 4)
			has_uids = true;
		/* This line lists the pids from the outermost namespace to the process's own. */
		if (!strncmp(line, "NSpid:", 6)) {
			last = strrchr(line, '\t');
			id.pid = last ? (int32_t)strtol(last + 1, NULL, 10) : 0;
		}
	}
	if (!has_uids || id.pid <= 0)
		return -EBADMSG;
	*out = id;
	return 0;
}

/*
 * True if the process runs as this user. Files of root do not do for others: in a mount namespace
 * of its own, a process can bind any file to the path of its perf map, also one that it cannot
 * read, such as /proc/kmsg, of which reading takes the kernel's messages away from the system's
 * log.
 */
static bool is_owner(const struct identity *id, uint32_t uid)
{
	for (size_t i = 0; i < ARRAY_SIZE(id->uids); i++) {
		if (id->uids[i] == uid)
			return true;
	}
	return false;
}

/*
 * Opens a path only if all its directories are in the kernel's cache (RESOLVE_CACHED). Otherwise,
 * looking them up could wait for a program that serves a FUSE file system. The directories of a
 * perf map are in the cache, because its process writes to the file all the time.
 */
static int open_cached(int root_fd, const char *path)
{
	return open_path_in_root(root_fd, path, O_NOFOLLOW, RESOLVE_CACHED);
}

/*
 * Checks that the file is a regular file of a file system of this host, and belongs to a user of
 * the process. Does not wait for a program that serves a FUSE file system. Stores the
 * state of the file. Returns 0 or a negative errno.
 */
static int file_check(int path_fd, int proc_fd, const struct identity *id,
		      struct remote_mounts *mounts, struct file_state *state_out)
{
	struct statx st;
	uint64_t dev;

	if (statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st) < 0)
		return -errno;
	dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	if (!S_ISREG(st.stx_mode) || (mounts && remote_mounts_contain(mounts, proc_fd, dev)))
		return -ENOENT;
	if (!is_owner(id, st.stx_uid))
		return -EPERM;
	*state_out = (struct file_state){
		.dev = dev,
		.inode = st.stx_ino,
		.size = st.stx_size,
		.mtime_ns = st.stx_mtime.tv_sec * NS_PER_S + st.stx_mtime.tv_nsec,
	};
	return 0;
}

int perf_map_open(int proc_fd, struct remote_mounts *mounts, struct file_state *state_out)
{
	_cleanup_(closep) int root_fd = -1, path_fd = -1;
	struct file_state state;
	struct identity id;
	char path[64];
	int fd, r;

	r = identity_read(proc_fd, &id);
	if (r < 0)
		return r;
	root_fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/tmp/perf-%" PRId32 ".map", id.pid);
	path_fd = open_cached(root_fd, path);
	if (path_fd < 0)
		return -ENOENT;
	r = file_check(path_fd, proc_fd, &id, mounts, &state);
	if (r < 0)
		return r;
	fd = open_path_fd(path_fd, 0);
	if (fd < 0)
		return fd;
	*state_out = state;
	return fd;
}

static void map_free(struct perf_map *map)
{
	atomic_fetch_sub(&memory, map->bytes);
	free(map->functions);
	free(map->text);
	free(map);
}

static void map_freep(struct perf_map **map)
{
	if (*map)
		map_free(*map);
}

/*
 * Adds `bytes` to the memory that is counted for the map. If the memory of all maps together would
 * then exceed its limit, adds nothing and returns -E2BIG.
 */
static int memory_charge(struct perf_map *map, size_t bytes)
{
	if (atomic_fetch_add(&memory, bytes) + bytes > PERF_MAPS_MEMORY_MAX) {
		atomic_fetch_sub(&memory, bytes);
		return -E2BIG;
	}
	map->bytes += bytes;
	return 0;
}

/*
 * Enlarges the arrays of the map: to text_size bytes for names, and to n functions. If an
 * allocation fails, its bytes still count as used by the map until the map is freed.
 */
static int reserve(struct perf_map *map, size_t text_size, size_t n)
{
	size_t text = array_capacity(map->text_capacity, text_size);
	size_t functions = array_capacity(map->functions_capacity, n);
	int r = memory_charge(map, text - map->text_capacity +
					   (functions - map->functions_capacity) *
						   sizeof(*map->functions));

	if (!r)
		r = array_reserve(map->text, map->text_capacity, text_size);
	if (!r)
		r = array_reserve(map->functions, map->functions_capacity, n);
	return r;
}

/*
 * Parses a line "START SIZE NAME" and adds the function. START and SIZE are hexadecimal, with or
 * without 0x. Ignores other lines.
 */
static int line_add(struct perf_map *map, const char *line)
{
	char *at, *end;
	uint64_t start = strtoull(line, &at, 16), size;
	size_t n;
	int r;

	if (at == line || *at != ' ')
		return 0;
	size = strtoull(at, &end, 16);
	if (end == at || *end != ' ' || !size || size > UINT32_MAX || start > UINT64_MAX - size)
		return 0;
	n = strlen(++end) + 1;
	if (n == 1)
		return 0;
	r = reserve(map, map->text_size + n, map->n + 1);
	if (r < 0)
		return r;
	memcpy(map->text + map->text_size, end, n);
	map->functions[map->n++] =
		(struct function){ start, (uint32_t)size, (uint32_t)map->text_size };
	map->text_size += n;
	return 0;
}

static int function_compare(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/*
 * Drops a function if it overlaps one that was written to the file later: the code of the earlier
 * function has been replaced.
 */
static void overlaps_drop(struct perf_map *map)
{
	size_t n = 0;

	if (map->n)
		qsort(map->functions, map->n, sizeof(*map->functions), function_compare);
	for (size_t i = 0; i < map->n; i++) {
		const struct function *function = &map->functions[i];
		bool is_late = true;

		while (n &&
		       map->functions[n - 1].start + map->functions[n - 1].size > function->start) {
			is_late = map->functions[n - 1].name < function->name;
			if (!is_late)
				break;
			n--;
		}
		if (is_late)
			map->functions[n++] = *function;
	}
	map->n = n;
}

/*
 * Reads lines until the end of the file. A last line without a newline is still being written, and
 * is left for the next read of the file.
 */
static int lines_read(struct perf_map *map, FILE *in)
{
	char line[LINE_BYTES];
	size_t total = map->read;
	int r;

	while (fgets(line, sizeof(line), in)) {
		size_t n = strlen(line);
		bool is_truncated_line = n == sizeof(line) - 1 && line[n - 1] != '\n';

		total += n;
		if (total > PERF_MAP_BYTES_MAX) {
			map->is_truncated = true;
			return 0;
		}
		if (!n || (line[n - 1] != '\n' && !is_truncated_line))
			break;
		line[is_truncated_line ? n : n - 1] = '\0';
		r = line_add(map, line);
		for (int c = 0;
		     is_truncated_line && c != EOF && c != '\n' && total <= PERF_MAP_BYTES_MAX;
		     total++)
			c = getc(in);
		if (r == -E2BIG && map->n) {
			map->is_truncated = true;
			return 0;
		}
		if (r < 0)
			return r;
		map->read = total;
		map->last_n = is_truncated_line ? 0 : n;
	}
	return ferror(in) ? -EIO : 0;
}

/* Frees the memory that was reserved for more lines but is not used. */
static void memory_trim(struct perf_map *map)
{
	struct function *functions = reallocarray(map->functions, map->n + 1, sizeof(*functions));
	char *text = realloc(map->text, map->text_size + 1);
	size_t bytes;

	map->functions = functions ? functions : map->functions;
	map->text = text ? text : map->text;
	bytes = (map->n + 1) * sizeof(*functions) + map->text_size + 1;
	if (functions && text && bytes < map->bytes) {
		atomic_fetch_sub(&memory, map->bytes - bytes);
		map->bytes = bytes;
	}
}

/*
 * Reads the last line of the map from the file again. Returns a hash of the line; 0 if it cannot be
 * read.
 */
static uint64_t last_line_hash(int fd, const struct perf_map *map)
{
	char line[LINE_BYTES];

	if (!map->last_n ||
	    pread(fd, line, map->last_n, (off_t)(map->read - map->last_n)) != (ssize_t)map->last_n)
		return 0;
	return hash64(HASH64_SEED, line, map->last_n);
}

/*
 * `before` is the map that was read from the file last time. True if the file has only grown since
 * then: the last line of the map is still at the same offset.
 */
static bool is_continued(int fd, const struct perf_map *before)
{
	return before && !before->is_truncated && before->last_hash &&
	       before->last_hash == last_line_hash(fd, before);
}

static int map_copy(struct perf_map *map, const struct perf_map *from)
{
	int r = reserve(map, from->text_size, from->n);

	if (r < 0)
		return r;
	if (from->n) {
		memcpy(map->text, from->text, from->text_size);
		memcpy(map->functions, from->functions, from->n * sizeof(*map->functions));
	}
	map->text_size = from->text_size;
	map->n = from->n;
	map->read = from->read;
	map->last_n = from->last_n;
	return 0;
}

int perf_map_read(int fd, const struct perf_map *before, struct perf_map **out)
{
	_cleanup_(map_freep) struct perf_map *map = calloc(1, sizeof(*map));
	_cleanup_(fclosep) FILE *in = NULL;
	int copy, r;

	if (!map)
		return -ENOMEM;
	atomic_init(&map->refs, 1);
	r = is_continued(fd, before) ? map_copy(map, before) : 0;
	if (r == -E2BIG) /* there is no room for a copy: read as much of the file as fits */
		return perf_map_read(fd, NULL, out);
	if (r < 0)
		return r;
	copy = dup(fd);
	if (copy < 0)
		return -errno;
	in = fdopen(copy, "re");
	if (!in) {
		close(copy);
		return -ENOMEM;
	}
	if (fseeko(in, (off_t)map->read, SEEK_SET) < 0)
		return -errno;
	r = lines_read(map, in);
	if (r < 0)
		return r;
	map->last_hash = last_line_hash(fd, map);
	overlaps_drop(map);
	memory_trim(map);
	*out = TAKE(map);
	return 0;
}

struct perf_map *perf_map_ref(struct perf_map *map)
{
	atomic_fetch_add(&map->refs, 1);
	return map;
}

struct perf_map *perf_map_unref(struct perf_map *map)
{
	if (map && atomic_fetch_sub(&map->refs, 1) == 1)
		map_free(map);
	return NULL;
}

const char *perf_map_lookup(const struct perf_map *map, uint64_t address, uint64_t *start_out)
{
	size_t low = 0, high = map->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->functions[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - map->functions[low - 1].start >= map->functions[low - 1].size)
		return NULL;
	*start_out = map->functions[low - 1].start;
	return map->text + map->functions[low - 1].name;
}

bool perf_map_is_truncated(const struct perf_map *map)
{
	return map->is_truncated;
}

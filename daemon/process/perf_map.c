/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/process/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <linux/openat2.h>

#include "common/base.h"
#include "common/search.h"
#include "daemon/host/open_file.h"
#include "daemon/host/procfs.h"
#include "daemon/parse/parse.h"
#include "daemon/parse/parser.h"
#include "daemon/symbol/perf_lines.h"

#define STATUS_BYTES 8192

struct perf_map {
	atomic_uint refs;
	bool is_truncated;
	struct perf_function *functions; /* sorted by start address, without overlaps */
	size_t n;
	char *text;
	size_t text_size;
	size_t bytes;	       /* memory of this map; the variable `memory` has the sum of all */
	struct user *user;     /* the owner of the file, to whom the memory is charged */
	struct perf_mark mark; /* how far the file was read */
};

static atomic_size_t memory;

/*
 * The users who have maps, and the memory of these maps. Users who find no free place share the
 * last one.
 */
enum { USERS_MAX = 128 };

static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static struct user {
	uint64_t key; /* see parser_owner_key() */
	size_t maps;  /* number of maps; 0: the place is free */
	size_t bytes;
} users[USERS_MAX];

/* Returns the place of a user, for one more map. */
static struct user *user_get(uint64_t key)
{
	struct user *user = &users[USERS_MAX - 1];

	pthread_mutex_lock(&users_lock);
	for (size_t i = USERS_MAX - 1; i-- > 0;) {
		if (users[i].maps && users[i].key == key) {
			user = &users[i];
			break;
		}
		if (!users[i].maps)
			user = &users[i];
	}
	user->key = key;
	user->maps++;
	pthread_mutex_unlock(&users_lock);
	return user;
}

static void user_put(struct user *user)
{
	pthread_mutex_lock(&users_lock);
	user->maps--;
	pthread_mutex_unlock(&users_lock);
}

/* Adds `bytes` to the memory of the user. Returns 0, or -E2BIG if that exceeds the user's share. */
static int user_charge(struct user *user, size_t bytes)
{
	int r = -E2BIG;

	pthread_mutex_lock(&users_lock);
	if (user->bytes + bytes <= PERF_MAPS_USER_MAX) {
		user->bytes += bytes;
		r = 0;
	}
	pthread_mutex_unlock(&users_lock);
	return r;
}

static void user_discharge(struct user *user, size_t bytes)
{
	pthread_mutex_lock(&users_lock);
	user->bytes -= bytes;
	pthread_mutex_unlock(&users_lock);
}

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
 * Checks that the file is a regular file of a local file system, and belongs to a user of the
 * process. Stores the state of the file. Returns 0 or a negative errno.
 */
static int file_check(int path_fd, int proc_fd, const struct identity *id,
		      struct remote_mounts *mounts, struct file_state *state_out)
{
	_cleanup_(mount_view_fini) struct mount_view view = mount_view_of(mounts, proc_fd);
	struct statx st;

	if (mount_view_is_remote(&view, path_fd))
		return -ENOENT;
	if (statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st) < 0)
		return -errno;
	if (!S_ISREG(st.stx_mode))
		return -ENOENT;
	if (!is_owner(id, st.stx_uid))
		return -EPERM;
	*state_out = (struct file_state){
		.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
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
	if (map->user) {
		atomic_fetch_sub(&memory, map->bytes);
		user_discharge(map->user, map->bytes);
		user_put(map->user);
	}
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
 * Adds `bytes` to the memory that is counted for the map. If the memory of all maps together, or of
 * those of its user, would then exceed its limit, adds nothing and returns -E2BIG.
 */
static int memory_charge(struct perf_map *map, size_t bytes)
{
	if (user_charge(map->user, bytes))
		return -E2BIG;
	if (atomic_fetch_add(&memory, bytes) + bytes > PERF_MAPS_MEMORY_MAX) {
		atomic_fetch_sub(&memory, bytes);
		user_discharge(map->user, bytes);
		return -E2BIG;
	}
	map->bytes += bytes;
	return 0;
}

/* Returns how many bytes of memory another map of this user may take. */
static size_t memory_room(struct user *user)
{
	size_t used = atomic_load(&memory), all, own;

	all = used < PERF_MAPS_MEMORY_MAX ? PERF_MAPS_MEMORY_MAX - used : 0;
	pthread_mutex_lock(&users_lock);
	own = user->bytes < PERF_MAPS_USER_MAX ? PERF_MAPS_USER_MAX - user->bytes : 0;
	pthread_mutex_unlock(&users_lock);
	return all < own ? all : own;
}

static int function_compare(const void *a, const void *b)
{
	const struct perf_function *x = a, *y = b;

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
		const struct perf_function *function = &map->functions[i];
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

/* Returns the memory of so many functions and bytes of names. */
static size_t bytes_of(size_t n, size_t text_size)
{
	return (n + 1) * sizeof(struct perf_function) + text_size + 1;
}

/*
 * Fills the map with what the earlier map has and the lines that follow it; `before` is NULL if the
 * lines are all. Returns 0, -E2BIG or -ENOMEM.
 */
static int map_fill(struct perf_map *map, const struct perf_map *before,
		    const struct perf_lines *lines)
{
	size_t n = before ? before->n : 0, text_size = before ? before->text_size : 0;
	int r = memory_charge(map, bytes_of(n + lines->n, text_size + lines->text_size));

	if (r)
		return r;
	map->functions = malloc((n + lines->n + 1) * sizeof(*map->functions));
	map->text = malloc(text_size + lines->text_size + 1);
	if (!map->functions || !map->text)
		return -ENOMEM;
	if (n) {
		memcpy(map->functions, before->functions, n * sizeof(*map->functions));
		memcpy(map->text, before->text, text_size);
	}
	for (size_t i = 0; i < lines->n; i++) {
		map->functions[n + i] = lines->functions[i];
		map->functions[n + i].name += (uint32_t)text_size;
	}
	if (lines->text_size)
		memcpy(map->text + text_size, lines->text, lines->text_size);
	map->n = n + lines->n;
	map->text_size = text_size + lines->text_size;
	map->mark = lines->mark;
	map->is_truncated = lines->is_truncated;
	overlaps_drop(map);
	return 0;
}

/*
 * Reads the lines of the file into a new map. Returns 0 or a negative errno: -E2BIG if there is no
 * room for a copy of the earlier map, too.
 */
static int map_read(struct parser *parser, int fd, const struct stat *st, uint64_t group,
		    const struct perf_map *before, struct perf_map *map)
{
	_cleanup_(perf_lines_fini) struct perf_lines lines = { 0 };
	char path[PATH_MAX];
	const struct parse_file file = {
		.fd = fd,
		.debug_fd = -1,
		.path = procfs_read_fd(fd, path) ? "a perf map" : path,
		.state = file_state_of(st),
		.owner = st->st_uid,
		.group = group,
		/* The thread that reads new processes waits. */
		.is_urgent = true,
	};
	bool may_continue = before && !before->is_truncated;
	size_t room = memory_room(map->user);
	size_t copy = bytes_of(may_continue ? before->n : 0, may_continue ? before->text_size : 0);
	int r;

	if (copy > room)
		return -E2BIG;
	r = parse_perf_lines(parser, &file, may_continue ? &before->mark : NULL, room - copy,
			     &lines);
	if (r)
		return r;
	if (lines.is_continued && !may_continue)
		return -EPROTO;
	return map_fill(map, lines.is_continued ? before : NULL, &lines);
}

int perf_map_read(struct parser *parser, int fd, uint64_t group, const struct perf_map *before,
		  struct perf_map **out)
{
	_cleanup_(map_freep) struct perf_map *map = calloc(1, sizeof(*map));
	struct stat st;
	int r;

	if (!map)
		return -ENOMEM;
	r = open_file_stat(fd, &st);
	if (r)
		return r;
	map->user = user_get(parser_owner_key(st.st_uid, group));
	atomic_init(&map->refs, 1);
	r = map_read(parser, fd, &st, group, before, map);
	if (r == -E2BIG && before) /* there is no room for a copy: read what fits of the file */
		return perf_map_read(parser, fd, group, NULL, out);
	if (!r)
		*out = TAKE(map);
	return r;
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
	size_t n = SEARCH(map->n, i, map->functions[i].start <= address);

	if (!n || address - map->functions[n - 1].start >= map->functions[n - 1].size)
		return NULL;
	*start_out = map->functions[n - 1].start;
	return map->text + map->functions[n - 1].name;
}

bool perf_map_is_truncated(const struct perf_map *map)
{
	return map->is_truncated;
}

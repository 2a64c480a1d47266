/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/target_binary.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "common/base.h"
#include "daemon/host/open_file.h"
#include "daemon/host/open_local.h"
#include "daemon/host/opener.h"
#include "daemon/host/procfs.h"

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#else
#define MULTIARCH "aarch64-linux-gnu"
#endif

/*
 * FILES_MAX: maximum number of files that a search finds. INCLUDES_MAX: a settings file of the
 * dynamic linker may include another one, which may include the next; this is the maximum length of
 * such a chain.
 */
enum { FILES_MAX = 64, INCLUDES_MAX = 8 };

/*
 * Limits of a search in the root directory of a container, whose files may be hostile: entries of
 * directories, lines and bytes of the dynamic linker's settings.
 */
enum { ENTRIES_MAX = 1 << 20, LINES_MAX = 4096, LINE_BYTES = 4096 };

/* Directories that are searched for libraries, after those in the dynamic linker's settings. */
static const char *const library_dirs[] = {
	"/usr/local/lib/" MULTIARCH,
	"/lib/" MULTIARCH,
	"/usr/lib/" MULTIARCH,
	"/usr/local/lib",
	"/lib64",
	"/usr/lib64",
	"/lib",
	"/usr/lib",
};

/* Directories that are searched for programs. */
static const char *const program_dirs[] = {
	"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
};

/*
 * A search for files of one name, in the root directories of several processes, one after the
 * other.
 */
struct search {
	const char *name;
	struct target_files *files;
	struct mount_view view; /* mounts of the process */
	int root_fd;
	unsigned n_entries, n_lines; /* entries of directories and lines that were read */
	char root[32]; /* path by which this process reaches root_fd: "/proc/1/root", or "" for its
			  own root */
	int error;     /* -ENOMEM if a file could not be added, else 0 */
};

void target_files_fini(struct target_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		free(files->v[i].path);
	free(files->v);
	*files = (struct target_files){};
}

/*
 * Opens a path below the root directory of the search; symbolic links cannot lead out of that root.
 * Returns an O_PATH fd, or a negative errno.
 */
static int open_in_root(struct search *search, const char *path)
{
	return open_local_path(&search->view, search->root_fd, path);
}

/*
 * True for a 64-bit ELF file. A linker script or a 32-bit library may have the name of a library,
 * too.
 */
static bool is_native_elf(int path_fd)
{
	_cleanup_(closep) int fd = -1;
	unsigned char ident[EI_NIDENT];
	struct stat st;

	/* Opening a device would call its driver. */
	if (open_file_stat(path_fd, &st) == 0 && S_ISREG(st.st_mode))
		fd = open_path_fd(path_fd, 0);
	return fd >= 0 && read(fd, ident, sizeof(ident)) == sizeof(ident) &&
	       memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS64;
}

/* Returns the descriptor; closes it and returns -EREMOTE if it is of a remote file. */
static int remote_close(struct mount_view *view, int fd)
{
	if (!mount_view_is_remote(view, fd))
		return fd;
	close(fd);
	return -EREMOTE;
}

/*
 * True for the files of a process that are links to others, and for which the kernel looks up no
 * path: exe, map_files/START-END.
 */
static bool is_link(const char *name)
{
	return !strcmp(name, "exe") ||
	       (!strncmp(name, "map_files/", 10) && !strchr(name + 10, '/'));
}

int target_path_open(struct remote_mounts *mounts, const char *path)
{
	_cleanup_(mount_view_fini) struct mount_view view = mount_view_of(mounts, -1);
	_cleanup_(closep) int proc_fd = -1, root_fd = -1;
	char process[24], dir[sizeof("/proc/") + sizeof(process)];
	const char *rest = path;
	int fd, n = 0;

	if (sscanf(path, "/proc/%23[0-9self]/%n", process, &n) == 1 && n &&
	    (is_link(path + n) || !strncmp(path + n, "root/", 5))) {
		snprintf(dir, sizeof(dir), "/proc/%s", process);
		proc_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (proc_fd < 0)
			return -errno;
		view.proc_fd = proc_fd;
		if (is_link(path + n)) {
			fd = openat(proc_fd, path + n, O_PATH | O_CLOEXEC);
			return fd < 0 ? -errno : remote_close(&view, fd);
		}
		rest = path + n + strlen("root");
	}
	root_fd = proc_fd < 0 ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)
			      : openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root_fd < 0 ? -errno : open_local_path(&view, root_fd, rest);
}

static bool is_file(const struct search *search, const char *path, const struct stat *st)
{
	_cleanup_(closep) int fd = target_path_open(search->view.mounts, path);
	struct stat found;

	return fd >= 0 && open_file_stat(fd, &found) == 0 && found.st_dev == st->st_dev &&
	       found.st_ino == st->st_ino;
}

/*
 * Returns a path by which this process can open the file `fd`. Tries the file's own path, then this
 * path below the root directory of the search, and if neither works, takes a copy of `link`. NULL
 * if `link` is needed but is NULL, or when out of memory.
 */
static char *path_from_here(const struct search *search, int fd, const struct stat *st,
			    const char *link)
{
	char path[PATH_MAX], *there = NULL;

	if (procfs_read_fd(fd, path) == 0) {
		if (is_file(search, path, st))
			return strdup(path);
		if (asprintf(&there, "%s%s", search->root, path) >= 0 && is_file(search, there, st))
			return there;
		free(there);
	}
	return link ? strdup(link) : NULL;
}

/*
 * Adds the file path_fd to search->files, unless it is there already. Closes path_fd. Does nothing
 * if path_fd is negative, because the caller could not open the file.
 */
static void file_add(struct search *search, int path_fd, const char *link)
{
	_cleanup_(closep) int fd = path_fd;
	struct target_files *files = search->files;
	struct target_file *file;
	struct stat st;
	size_t i;

	if (fd < 0 || open_file_stat(fd, &st) < 0 || !S_ISREG(st.st_mode) || files->n == FILES_MAX)
		return;
	for (i = 0; i < files->n; i++)
		if (files->v[i].dev == st.st_dev && files->v[i].inode == st.st_ino)
			return;
	if (array_reserve(files->v, files->capacity, files->n + 1)) {
		search->error = -ENOMEM;
		return;
	}
	file = &files->v[files->n];
	*file = (struct target_file){
		.path = path_from_here(search, fd, &st, link),
		.dev = st.st_dev,
		.inode = st.st_ino,
	};
	if (file->path)
		files->n++;
}

/*
 * True if a user may mean the file `base` by `name`: c and libc stand for libc.so.6, and libssl.so
 * stands for libssl.so.3.
 */
static bool is_called(const char *base, const char *name)
{
	const char *rest;

	if (strcmp(base, name) == 0)
		return true;
	if (strncmp(base, name, strlen(name)) == 0)
		rest = base + strlen(name);
	else if (strncmp(base, "lib", 3) == 0 && strncmp(base + 3, name, strlen(name)) == 0)
		rest = base + 3 + strlen(name);
	else
		return false;
	if (strncmp(rest, ".so", 3) == 0)
		return rest[3] == '\0' || rest[3] == '.';
	return rest[0] == '.' && strstr(name, ".so");
}

static void library_dir_search(struct search *search, const char *dir)
{
	int dir_fd = open_in_root(search, dir), fd;
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *stream;

	fd = dir_fd < 0 ? -1 : open_path_fd(dir_fd, O_DIRECTORY);
	closep(&dir_fd);
	stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		closep(&fd);
		return;
	}
	while (search->n_entries++ < ENTRIES_MAX && (entry = readdir(stream))) {
		if (!is_called(entry->d_name, search->name))
			continue;
		snprintf(path, sizeof(path), "%.3000s/%s", dir, entry->d_name);
		fd = open_in_root(search, path);
		if (fd >= 0 && is_native_elf(fd))
			file_add(search, fd, NULL);
		else
			closep(&fd);
	}
	closedir(stream);
}

static void settings_search(struct search *search, const char *path, int depth);

/*
 * Reads the settings files that match a pattern, which may have wildcards in the name of the file,
 * not in that of its directory.
 */
static void include_search(struct search *search, char *pattern, int depth)
{
	char *name = strrchr(pattern, '/') + 1, path[2 * PATH_MAX];
	int dir_fd, fd;
	struct dirent *entry;
	DIR *stream;

	if (depth == INCLUDES_MAX)
		return;
	snprintf(path, sizeof(path), "%.*s", (int)(name - pattern), pattern);
	dir_fd = open_in_root(search, path);
	fd = dir_fd < 0 ? -1 : open_path_fd(dir_fd, O_DIRECTORY);
	closep(&dir_fd);
	stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		closep(&fd);
		return;
	}
	while (search->n_entries++ < ENTRIES_MAX && (entry = readdir(stream))) {
		if (entry->d_name[0] == '.' || fnmatch(name, entry->d_name, 0))
			continue;
		snprintf(path, sizeof(path), "%.*s%s", (int)(name - pattern), pattern,
			 entry->d_name);
		settings_search(search, path, depth + 1);
	}
	closedir(stream);
}

/* Searches the directories that a settings file of the dynamic linker lists; see ldconfig(8). */
static void settings_search(struct search *search, const char *path, int depth)
{
	int fd = open_local_file(&search->view, search->root_fd, path);
	_cleanup_(fclosep) FILE *f = fd < 0 ? NULL : fdopen(fd, "re");
	char text[LINE_BYTES], word[LINE_BYTES], more[LINE_BYTES];
	int n;

	if (!f) {
		closep(&fd);
		return;
	}
	while (search->n_lines++ < LINES_MAX && fgets(text, sizeof(text), f)) {
		text[strcspn(text, "#\n")] = '\0';
		n = sscanf(text, "%4000s %4000s", word, more);
		if (n == 2 && strcmp(word, "include") == 0 && more[0] == '/')
			include_search(search, more, depth);
		else if (n == 1 && word[0] == '/')
			library_dir_search(search, word);
	}
}

static void dirs_search(struct search *search)
{
	char path[PATH_MAX];
	size_t i;

	settings_search(search, "/etc/ld.so.conf", 0);
	for (i = 0; i < ARRAY_SIZE(library_dirs); i++)
		library_dir_search(search, library_dirs[i]);
	for (i = 0; i < ARRAY_SIZE(program_dirs); i++) {
		snprintf(path, sizeof(path), "%s/%.255s", program_dirs[i], search->name);
		file_add(search, open_in_root(search, path), NULL);
	}
}

/*
 * Adds the files that a process has mapped and that have the searched name. The process calls
 * functions in these files, even if they were replaced on disk since then.
 */
static void mapped_search(struct search *search, int dir_fd, int64_t task)
{
	_cleanup_(proc_maps_fini) struct proc_maps mappings = {};
	const struct proc_mapping *mapping;
	char link[96];

	if (procfs_read_maps(dir_fd, &mappings) < 0)
		return;
	for (size_t i = 0; i < mappings.n; i++) {
		mapping = &mappings.items[i];
		if (mapping->path[0] != '/' ||
		    !is_called(strrchr(mapping->path, '/') + 1, search->name))
			continue;
		snprintf(link, sizeof(link), "/proc/%" PRId64 "/map_files/%" PRIx64 "-%" PRIx64,
			 task, mapping->start, mapping->end);
		file_add(search, open_local_mapped(&search->view, mapping), link);
	}
}

static int root_open(struct search *search, int dir_fd, int64_t task)
{
	search->view = mount_view_of(search->view.mounts, task ? dir_fd : -1);
	search->root[0] = '\0';
	if (task)
		snprintf(search->root, sizeof(search->root), "/proc/%" PRId64 "/root", task);
	search->root_fd = task ? openat(dir_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC)
			       : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return search->root_fd < 0 ? -errno : 0;
}

static void root_close(struct search *search)
{
	mount_view_fini(&search->view);
	closep(&search->root_fd);
	search->root_fd = -1;
}

/*
 * Searches the files that one process or thread sees. Finds nothing if the process or thread has
 * exited.
 */
static void task_search(struct search *search, int64_t task)
{
	struct procfs_stat stat;
	_cleanup_(closep) int dir_fd = procfs_open((int32_t)task, &stat);
	size_t before = search->files->n;

	if (dir_fd < 0 || root_open(search, dir_fd, task) < 0)
		return;
	if (search->name[0] == '/') {
		file_add(search, open_in_root(search, search->name), NULL);
	} else {
		mapped_search(search, dir_fd, task);
		if (search->files->n == before)
			dirs_search(search);
	}
	root_close(search);
}

/* Searches the files that process 1 sees: systemd may hide /home and /tmp from the daemon. */
static void host_search(struct search *search)
{
	struct procfs_stat stat;
	_cleanup_(closep) int dir_fd = procfs_open(1, &stat);

	if (dir_fd < 0 || root_open(search, dir_fd, 1) < 0)
		return;
	if (search->name[0] == '/')
		file_add(search, open_in_root(search, search->name), NULL);
	else
		dirs_search(search);
	root_close(search);
}

/* Searches the files that the daemon itself sees. */
static void own_search(struct search *search)
{
	if (search->name[0] == '/') {
		file_add(search, target_path_open(search->view.mounts, search->name), search->name);
		return;
	}
	if (root_open(search, -1, 0) == 0)
		dirs_search(search);
	root_close(search);
}

static int name_check(const char *name, char *why, size_t size)
{
	if (strpbrk(name, "*?["))
		snprintf(why, size, "%.200s: name one program or library, without wildcards", name);
	else if (name[0] != '/' && strchr(name, '/'))
		snprintf(why, size, "%.200s: a path begins with /", name);
	else
		return 0;
	return -EINVAL;
}

static int nothing_found(const char *name, struct remote_mounts *mounts, char *why, size_t size)
{
	_cleanup_(closep) int fd = -1;

	if (name[0] != '/') {
		snprintf(why, size,
			 "there is no library or program %.200s; its path can be given too", name);
		return -ENOENT;
	}
	fd = target_path_open(mounts, name);
	if (fd == -EREMOTE)
		snprintf(
			why, size,
			"%.300s: on a remote file system, which is read only with [symbols] remote",
			name);
	else if (fd < 0)
		snprintf(why, size, "%.300s: %s", name, opener_error_text(fd));
	else
		snprintf(why, size, "%.300s: not a program or library (ELF)", name);
	return target_error_is_passing(fd) ? fd : -ENOENT;
}

int target_files_find(const char *name, struct remote_mounts *mounts,
		      const struct target_tasks *tasks, struct target_files *out, char *why,
		      size_t size)
{
	_cleanup_(target_files_fini) struct target_files files = {};
	struct search search = { .name = name, .files = &files, .root_fd = -1 };
	size_t i;
	int r = name_check(name, why, size);

	if (r)
		return r;
	search.view = mount_view_of(mounts, -1);
	for (i = 0; tasks && i < tasks->n; i++)
		task_search(&search, tasks->ids[i]);
	if (!files.n)
		host_search(&search);
	search.root[0] = '\0';
	if (!files.n)
		own_search(&search);
	if (search.error)
		return search.error;
	if (!files.n)
		return nothing_found(name, mounts, why, size);
	*out = files;
	files = (struct target_files){};
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/target_binary.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/host/open_file.h"
#include "daemon/host/procfs.h"

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#else
#define MULTIARCH "aarch64-linux-gnu"
#endif

/* Of more than these no message would tell, and files that include each other go no deeper. */
enum { FILES_MAX = 64, INCLUDES_MAX = 8 };

/* As the dynamic linker has them, besides what its settings name, and a shell. */
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
static const char *const program_dirs[] = {
	"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
};

/* What is looked for, and in whose root. */
struct search {
	const char *place;
	struct target_files *files;
	int root_fd;
	char root[32]; /* before a path it is that path there; "" here */
	int error;     /* of what was added */
};

void target_files_fini(struct target_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		free(files->v[i].path);
	free(files->v);
	*files = (struct target_files){};
}

/* Links within a root lead to files within it. */
static int open_in_root(const struct search *search, const char *path)
{
	return open_path_in_root(search->root_fd, path, 0, 0);
}

/* A linker script is called as a library is, and those of 32 bits have the others' names. */
static bool is_native_elf(int path_fd)
{
	_cleanup_(closep) int fd = open_path_fd(path_fd, 0);
	unsigned char ident[EI_NIDENT];

	return fd >= 0 && read(fd, ident, sizeof(ident)) == sizeof(ident) &&
	       memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS64;
}

static bool is_file(const char *path, const struct stat *st)
{
	struct stat found;

	return stat(path, &found) == 0 && found.st_dev == st->st_dev && found.st_ino == st->st_ino;
}

/* As a user here would call it; else by the way it was found. NULL where there is none. */
static char *path_from_here(const struct search *search, int fd, const struct stat *st,
			    const char *link)
{
	char path[PATH_MAX], *there = NULL;

	if (procfs_read_fd(fd, path) == 0) {
		if (is_file(path, st))
			return strdup(path);
		if (asprintf(&there, "%s%s", search->root, path) >= 0 && is_file(there, st))
			return there;
		free(there);
	}
	return link ? strdup(link) : NULL;
}

/* Takes the descriptor, or what its opening failed with. */
static void file_add(struct search *search, int path_fd, const char *link)
{
	_cleanup_(closep) int fd = path_fd;
	struct target_files *files = search->files;
	struct target_file *v;
	struct stat st;
	size_t i;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || files->n == FILES_MAX)
		return;
	for (i = 0; i < files->n; i++)
		if (files->v[i].dev == st.st_dev && files->v[i].inode == st.st_ino)
			return;
	v = reallocarray(files->v, files->n + 1, sizeof(*v));
	if (!v) {
		search->error = -ENOMEM;
		return;
	}
	files->v = v;
	v[files->n] = (struct target_file){
		.path = path_from_here(search, fd, &st, link),
		.dev = st.st_dev,
		.inode = st.st_ino,
	};
	if (v[files->n].path)
		files->n++;
}

/* c and libc are libc.so or libc.so.6, libssl.so is libssl.so.3 too. */
static bool is_called(const char *base, const char *place)
{
	const char *rest;

	if (strcmp(base, place) == 0)
		return true;
	if (strncmp(base, place, strlen(place)) == 0)
		rest = base + strlen(place);
	else if (strncmp(base, "lib", 3) == 0 && strncmp(base + 3, place, strlen(place)) == 0)
		rest = base + 3 + strlen(place);
	else
		return false;
	if (strncmp(rest, ".so", 3) == 0)
		return rest[3] == '\0' || rest[3] == '.';
	return rest[0] == '.' && strstr(place, ".so");
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
	while ((entry = readdir(stream))) {
		if (!is_called(entry->d_name, search->place))
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

static void include_search(struct search *search, const char *pattern, int depth)
{
	char there[PATH_MAX + sizeof(search->root)];
	glob_t found;

	if (depth == INCLUDES_MAX)
		return;
	snprintf(there, sizeof(there), "%s%s", search->root, pattern);
	if (glob(there, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		settings_search(search, found.gl_pathv[i] + strlen(search->root), depth + 1);
	globfree(&found);
}

/* The linker's own, see ldconfig(8): a directory a line, or files to go on with. */
static void settings_search(struct search *search, const char *path, int depth)
{
	_cleanup_(closep) int path_fd = open_in_root(search, path);
	int fd = path_fd < 0 ? -1 : open_path_fd(path_fd, 0);
	_cleanup_(fclosep) FILE *f = fd < 0 ? NULL : fdopen(fd, "re");
	_cleanup_(freep) char *text = NULL;
	char word[PATH_MAX], more[PATH_MAX];
	size_t room = 0;
	int n;

	if (!f) {
		closep(&fd);
		return;
	}
	while (getline(&text, &room, f) > 0) {
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
		snprintf(path, sizeof(path), "%s/%.255s", program_dirs[i], search->place);
		file_add(search, open_in_root(search, path), NULL);
	}
}

/* What is in a process now is what it calls, whatever has the name on disk. */
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
		    !is_called(strrchr(mapping->path, '/') + 1, search->place))
			continue;
		snprintf(link, sizeof(link), "/proc/%" PRId64 "/map_files/%" PRIx64 "-%" PRIx64,
			 task, mapping->start, mapping->end);
		file_add(search, procfs_open_mapped(dir_fd, mapping), link);
	}
}

static int root_open(struct search *search, int dir_fd, int64_t task)
{
	search->root[0] = '\0';
	if (task)
		snprintf(search->root, sizeof(search->root), "/proc/%" PRId64 "/root", task);
	search->root_fd = task ? openat(dir_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC)
			       : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return search->root_fd < 0 ? -errno : 0;
}

/* One that ends meanwhile has nothing. */
static void task_search(struct search *search, int64_t task)
{
	struct procfs_stat stat;
	_cleanup_(closep) int dir_fd = procfs_open((int32_t)task, &stat);
	size_t before = search->files->n;

	if (dir_fd < 0 || root_open(search, dir_fd, task) < 0)
		return;
	if (search->place[0] == '/') {
		file_add(search, open_in_root(search, search->place), NULL);
	} else {
		mapped_search(search, dir_fd, task);
		if (search->files->n == before)
			dirs_search(search);
	}
	closep(&search->root_fd);
}

/* The host as its users see it, of which a unit may hide /home and /tmp from its daemon. */
static void host_search(struct search *search)
{
	struct procfs_stat stat;
	_cleanup_(closep) int dir_fd = procfs_open(1, &stat);

	if (dir_fd < 0 || root_open(search, dir_fd, 1) < 0)
		return;
	if (search->place[0] == '/')
		file_add(search, open_in_root(search, search->place), NULL);
	else
		dirs_search(search);
	closep(&search->root_fd);
}

/* A path is whatever it is; a name has to be looked for. */
static void here_search(struct search *search)
{
	if (search->place[0] == '/') {
		file_add(search, open(search->place, O_PATH | O_CLOEXEC), search->place);
		return;
	}
	if (root_open(search, -1, 0) == 0)
		dirs_search(search);
	closep(&search->root_fd);
}

static int place_check(const char *place, char *why, size_t size)
{
	if (strpbrk(place, "*?["))
		snprintf(why, size, "%.200s: one program or library, without wildcards", place);
	else if (place[0] != '/' && strchr(place, '/'))
		snprintf(why, size, "%.200s: a path begins with /", place);
	else
		return 0;
	return -EINVAL;
}

static int nothing_found(const char *place, char *why, size_t size)
{
	struct stat st;

	if (place[0] != '/')
		snprintf(why, size, "there is no library or program %.200s; a path names it too",
			 place);
	else if (stat(place, &st) < 0)
		snprintf(why, size, "%.300s: %s", place, strerror(errno));
	else
		snprintf(why, size, "%.300s: no program or library (ELF)", place);
	return -ENOENT;
}

int target_files_find(const char *place, const struct target_tasks *tasks, struct target_files *out,
		      char *why, size_t size)
{
	_cleanup_(target_files_fini) struct target_files files = {};
	struct search search = { .place = place, .files = &files, .root_fd = -1 };
	size_t i;
	int r = place_check(place, why, size);

	if (r)
		return r;
	for (i = 0; tasks && i < tasks->n; i++)
		task_search(&search, tasks->ids[i]);
	if (!files.n)
		host_search(&search);
	search.root[0] = '\0';
	if (!files.n)
		here_search(&search);
	if (search.error)
		return search.error;
	if (!files.n)
		return nothing_found(place, why, size);
	*out = files;
	files = (struct target_files){};
	return 0;
}

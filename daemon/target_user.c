/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/elf_file.h"
#include "daemon/elf_functions.h"
#include "daemon/elf_usdt.h"
#include "daemon/target.h"
#include "proto/base.h"

#if defined(__x86_64__)
#define MULTIARCH "x86_64-linux-gnu"
#else
#define MULTIARCH "aarch64-linux-gnu"
#endif

/* As the dynamic linker and a shell have them. */
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

/* What was found by a name: one file, by whatever links; or a second one. */
struct search {
	char *path;
	char *other;
	dev_t dev;
	ino_t ino;
};

static void search_fini(struct search *search)
{
	free(search->path);
	free(search->other);
}

static bool is_elf(const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char magic[4];

	return fd >= 0 && read(fd, magic, sizeof(magic)) == sizeof(magic) &&
	       memcmp(magic, "\177ELF", 4) == 0;
}

/* A linker script is called as a library is. */
static void search_try(struct search *search, const char *path)
{
	struct stat st;

	if (search->other || stat(path, &st) < 0 || !S_ISREG(st.st_mode) || !is_elf(path))
		return;
	if (!search->path) {
		search->path = realpath(path, NULL);
		search->dev = st.st_dev;
		search->ino = st.st_ino;
	} else if (st.st_dev != search->dev || st.st_ino != search->ino) {
		search->other = realpath(path, NULL);
	}
}

static void search_glob(struct search *search, const char *pattern)
{
	glob_t found;
	size_t i;

	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	for (i = 0; i < found.gl_pathc; i++)
		search_try(search, found.gl_pathv[i]);
	globfree(&found);
}

/* One file or several: of a library the development package adds another name. */
static void search_library(struct search *search, const char *dir, const char *prefix,
			   const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s%.200s.so", dir, prefix, name);
	search_try(search, path);
	snprintf(path, sizeof(path), "%s/%s%.200s.so.[0-9]*", dir, prefix, name);
	search_glob(search, path);
}

/* c and libc are libc.so or libc.so.6, libc.so.6 is itself; then programs. */
static void search_run(struct search *search, const char *name)
{
	char path[512];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(library_dirs) && !search->path; i++) {
		snprintf(path, sizeof(path), "%s/%.200s", library_dirs[i], name);
		if (strstr(name, ".so"))
			search_try(search, path);
		search_library(search, library_dirs[i], "lib", name);
		if (strncmp(name, "lib", 3) == 0)
			search_library(search, library_dirs[i], "", name);
	}
	for (i = 0; i < ARRAY_SIZE(program_dirs) && !search->path; i++) {
		snprintf(path, sizeof(path), "%s/%.200s", program_dirs[i], name);
		search_try(search, path);
	}
}

static int file_find(const char *place, char **out, char *why, size_t size)
{
	_cleanup_(search_fini) struct search search = {};

	if (strpbrk(place, "*?[")) {
		snprintf(why, size, "%.200s: one program or library, without wildcards", place);
		return -EINVAL;
	}
	if (strchr(place, '/') && place[0] != '/') {
		snprintf(why, size, "%.200s: a path begins with /", place);
		return -EINVAL;
	}
	if (place[0] == '/') {
		*out = strdup(place);
		return *out ? 0 : -ENOMEM;
	}
	search_run(&search, place);
	if (search.other) {
		snprintf(why, size, "%.100s is %.150s and %.150s: name one by its path", place,
			 search.path, search.other);
		return -EINVAL;
	}
	if (!search.path) {
		snprintf(why, size, "there is no library or program %.200s; a path names it too",
			 place);
		return -ENOENT;
	}
	*out = TAKE(search.path);
	return 0;
}

struct finder {
	const struct target_pattern *pattern;
	struct targets *out;
};

static int on_function(void *context, const char *name, uint64_t offset)
{
	struct finder *finder = context;

	return target_fits(finder->pattern, name) ? targets_add(finder->out, name, offset) : 0;
}

/* u:PATH:0x1234: by its virtual address in the file. */
static int address_find(int fd, const struct target_pattern *pattern, struct targets *out)
{
	const struct elf_source source = { .fd = fd };
	_cleanup_(elf_file_fini) struct elf_file file = {};
	uint64_t offset;
	char *end;
	int r = elf_file_read(&source, &file);

	errno = 0;
	if (!r && !elf_code_offset(&file, strtoull(pattern->name, &end, 16), &offset) && !errno &&
	    !*end)
		r = targets_add(out, pattern->name, offset);
	return r;
}

/* With its provider where the pattern has one. */
static int on_probe(void *context, const char *name, uint64_t offset, uint32_t counter)
{
	const struct finder *finder = context;
	const char *probe = strchr(name, ':') + 1;
	struct targets *out = finder->out;
	int r;

	if (!target_fits(finder->pattern, strchr(finder->pattern->name, ':') ? name : probe))
		return 0;
	r = targets_add(out, name, offset);
	if (!r)
		out->v[out->n - 1].counter = counter;
	return r;
}

static int functions_find(int fd, const struct target_pattern *pattern, struct targets *out)
{
	struct finder finder = { pattern, out };
	int r = 0;

	if (!pattern->is_regex && strncmp(pattern->name, "0x", 2) == 0)
		return address_find(fd, pattern, out);
	if (pattern->kind == TARGET_USER)
		r = elf_functions(fd, out->path, on_function, &finder);
	if (r || out->n)
		return r;
	r = elf_usdt(fd, on_probe, &finder);
	if (out->n)
		out->kind = TARGET_USDT;
	return r;
}

int target_find_user(const struct target_pattern *pattern, struct targets *out, char *why,
		     size_t size)
{
	_cleanup_(closep) int fd = -1;
	int r;

	*out = (struct targets){ .kind = pattern->kind };
	r = file_find(pattern->place, &out->path, why, size);
	if (r)
		return r;
	fd = open(out->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		r = -errno;
	else
		r = functions_find(fd, pattern, out);
	if (!r) {
		targets_settle(out);
		return 0;
	}
	if (r != -ENOMEM)
		snprintf(why, size, "%.300s: %s", out->path,
			 r == -ENOEXEC	 ? "no program or library (ELF)"
			 : r == -EBADMSG ? "a broken ELF file"
					 : strerror(-r));
	targets_fini(out);
	return r;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/elf/file.h"
#include "daemon/elf/functions.h"
#include "daemon/elf/usdt.h"
#include "daemon/probe/target.h"
#include "daemon/probe/target_binary.h"

struct finder {
	const struct target_pattern *pattern;
	struct targets *out;
};

static int on_function(void *context, const char *name, uint64_t offset)
{
	struct finder *finder = context;

	return target_fits(finder->pattern, name) ? targets_add(finder->out, name, offset) : 0;
}

/*
 * For a pattern with an address, such as u:PATH:0x1234: adds the function at this virtual address.
 */
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

/*
 * Adds a static probe (USDT) if the pattern matches its name, which is "provider:name". A pattern
 * without a provider matches the probes of any provider.
 */
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

	if (!pattern->regex && strncmp(pattern->name, "0x", 2) == 0)
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

/*
 * True if root owns the file or folder, only root may write to it, and it is not a symbolic link.
 */
static bool is_roots_alone(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && st.st_uid == 0 && !S_ISLNK(st.st_mode) &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * Checks for a restricted pattern that only root can change the file or put another one in its
 * place: is_roots_alone() must be true of the file and of each folder on its path. Stores in
 * *real_out the path without symbolic links; the caller frees it. Returns 0; -ENOMEM; or -EPERM
 * with one line in `why` (size bytes).
 */
static int restricted_check(const struct target_pattern *pattern, const char *path, char **real_out,
			    char *why, size_t size)
{
	/* A path below /proc/PID/root leads into a container, but realpath() leads out of it. */
	_cleanup_(freep) char *real = strncmp(path, "/proc/", 6) ? realpath(path, NULL) : NULL;
	bool is_good = real && is_roots_alone(real) && is_roots_alone("/");
	char *slash;

	if (!pattern->regex && strncmp(pattern->name, "0x", 2) == 0) {
		snprintf(why, size, "%.60s: only root may trace an address; name a function",
			 pattern->name);
		return -EPERM;
	}
	for (slash = real; is_good && (slash = strchr(slash + 1, '/'));) {
		*slash = '\0';
		is_good = is_roots_alone(real);
		*slash = '/';
	}
	if (!is_good) {
		snprintf(why, size,
			 "%.300s: only root may trace functions of a file that others "
			 "than root can change or replace",
			 path);
		return -EPERM;
	}
	*real_out = TAKE(real);
	return 0;
}

/*
 * Searches one file for functions that match the pattern. Returns 0 even if there are none. On a
 * negative errno, `why` (size bytes) gets one line that says what failed.
 */
static int file_search(const struct target_pattern *pattern, const char *path, struct targets *out,
		       char *why, size_t size)
{
	_cleanup_(targets_fini) struct targets found = { .kind = pattern->kind };
	_cleanup_(closep) int fd = -1;
	int r = 0;

	if (pattern->is_restricted)
		r = restricted_check(pattern, path, &found.path, why, size);
	else
		found.path = strdup(path);
	if (r || !found.path)
		return r ? r : -ENOMEM;
	fd = open(found.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	r = fd < 0 ? -errno : functions_find(fd, pattern, &found);
	if (r == -ENOMEM)
		return r;
	if (r) {
		snprintf(why, size, "%.300s: %s", path,
			 r == -ENOEXEC	 ? "not a program or library (ELF)"
			 : r == -EBADMSG ? "a broken ELF file"
			 : r == -E2BIG	 ? "more than 64 MiB of symbols: trace it by address"
					 : strerror(-r));
		return r;
	}
	targets_settle(&found);
	*out = found;
	found = (struct targets){};
	return 0;
}

/*
 * Several files have a match, and only the user knows which of them is meant. Writes an error that
 * names these files to `why` (size bytes). Returns -EINVAL.
 */
static int ambiguous(const struct target_pattern *pattern, const struct target_files *files,
		     const bool *has, char *why, size_t size)
{
	size_t used, shown = 0, n = 0;

	for (size_t i = 0; i < files->n; i++)
		n += has[i];
	snprintf(why, size, "%.60s of %.60s is in %zu files: ", pattern->name, pattern->scope, n);
	for (size_t i = 0; i < files->n && shown < 3; i++) {
		if (!has[i])
			continue;
		used = strlen(why);
		snprintf(why + used, size - used, "%s%.90s", shown++ ? ", " : "", files->v[i].path);
	}
	used = strlen(why);
	snprintf(why + used, size - used, "%s: name one by its path", n > shown ? ", ..." : "");
	return -EINVAL;
}

static int files_search(const struct target_pattern *pattern, const struct target_files *files,
			bool *has, struct targets *out, char *why, size_t size)
{
	_cleanup_(targets_fini) struct targets found = { .kind = pattern->kind };
	struct targets next;
	size_t i, n = 0;
	int r, failed = 0;

	for (i = 0; i < files->n; i++) {
		r = file_search(pattern, files->v[i].path, &next, why, size);
		if (r == -ENOMEM)
			return r;
		if (r) {
			failed = r;
			continue;
		}
		has[i] = next.n > 0;
		n += has[i];
		/*
		 * If there is only one file, keep it even without a match, because error messages
		 * have to name it.
		 */
		if ((n == 1 && has[i]) || files->n == 1) {
			targets_fini(&found);
			found = next;
		} else {
			targets_fini(&next);
		}
	}
	if (n > 1)
		return ambiguous(pattern, files, has, why, size);
	if (!n && failed)
		return failed;
	*out = found;
	found = (struct targets){};
	return 0;
}

int target_find_user(const struct target_pattern *pattern, const struct target_tasks *tasks,
		     struct targets *out, char *why, size_t size)
{
	_cleanup_(target_files_fini) struct target_files files = {};
	_cleanup_(freep) bool *has = NULL;
	int r = target_files_find(pattern->scope, tasks, &files, why, size);

	if (r)
		return r;
	has = calloc(files.n, sizeof(*has));
	return has ? files_search(pattern, &files, has, out, why, size) : -ENOMEM;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/elf/debug_file.h"
#include "daemon/elf/file.h"
#include "daemon/elf/functions.h"
#include "daemon/host/open_file.h"
#include "daemon/host/opener.h"
#include "daemon/host/procfs.h"
#include "daemon/parse/parse.h"
#include "daemon/parse/parser.h"
#include "daemon/probe/target.h"
#include "daemon/probe/target_binary.h"

struct finder {
	const struct target_pattern *pattern;
	struct targets *out;
	struct targets sorts[ELF_FUNCTION_SORTS]; /* what named_find() found */
};

static int on_function(void *context, const char *name, uint64_t offset, uint32_t sort)
{
	struct finder *finder = context;

	return target_fits(finder->pattern, name) ? targets_add(&finder->sorts[sort], name, offset)
						  : 0;
}

/* Notes how many functions match that are chosen at run time, and the name of the first one. */
static int chosen_note(struct targets *chosen, struct targets *out)
{
	targets_settle(chosen);
	out->forbidden = chosen->n;
	if (!chosen->n)
		return 0;
	out->chosen = strdup(chosen->v[0].name);
	return out->chosen ? 0 : -ENOMEM;
}

/*
 * Adds the functions whose names match. Leaves out those that are chosen at run time, which are not
 * where their symbols are; and those of old versions, unless there are no others.
 */
static int named_find(const struct target_pattern *pattern, const struct parse_file *file,
		      struct targets *out)
{
	struct finder finder = { .pattern = pattern };
	struct targets *sorts = finder.sorts, *from = &sorts[ELF_FUNCTION];
	int r = parse_functions(pattern->parser, file, on_function, &finder);

	if (!r)
		r = chosen_note(&sorts[ELF_FUNCTION_CHOOSES], out);
	if (!from->n && !out->forbidden)
		from = &sorts[ELF_FUNCTION_OLD];
	if (!r) {
		out->v = TAKE(from->v);
		out->n = from->n;
		out->capacity = from->capacity;
		*from = (struct targets){};
	}
	for (size_t i = 0; i < ELF_FUNCTION_SORTS; i++)
		targets_fini(&sorts[i]);
	return r;
}

static bool is_address(const struct target_pattern *pattern)
{
	return !pattern->regex && strncmp(pattern->name, "0x", 2) == 0;
}

/*
 * For a pattern with an address, such as u:PATH:0x1234: adds the function at this virtual address.
 */
static int address_find(const struct elf_file *elf, const struct target_pattern *pattern,
			struct targets *out)
{
	uint64_t address, offset;
	char *end;

	errno = 0;
	address = strtoull(pattern->name, &end, 16);
	if (errno || *end || elf_code_offset(elf, address, &offset))
		return 0;
	return targets_add(out, pattern->name, offset);
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

/* `why` (PARSER_WHY_MAX bytes, or NULL) gets the reason for which the file cannot be parsed. */
static int file_of(int fd, const char *path, char *why, struct parse_file *out)
{
	struct stat st;

	if (open_file_stat(fd, &st) < 0)
		return -errno;
	*out = (struct parse_file){
		.fd = fd,
		.debug_fd = -1,
		.path = path,
		.state = file_state_of(&st),
		.owner = st.st_uid,
		.why = why,
		/* A false offset would put a breakpoint into the middle of an instruction. */
		.is_alone = true,
	};
	return 0;
}

/*
 * True if root owns the file or folder, only root may write to it, everybody may read the file or
 * enter the folder, and it is not a symbolic link.
 */
static bool is_roots(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && st.st_uid == 0 && !S_ISLNK(st.st_mode) &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
	       (st.st_mode & (S_ISDIR(st.st_mode) ? S_IXOTH : S_IROTH));
}

/* True if is_roots() is true of the path and of each folder on it. Changes `path` meanwhile. */
static bool is_roots_all_along(char *path)
{
	bool is_good = is_roots(path) && is_roots("/");
	char *slash = path;

	while (is_good && (slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		is_good = is_roots(path);
		*slash = '/';
	}
	return is_good;
}

/* True if is_roots_all_along() is true of an open file, wherever links have led to it. */
static bool is_roots_fd(int fd)
{
	char link[32], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0 || path[0] != '/')
		return false;
	path[n] = '\0';
	return is_roots_all_along(path);
}

/* The ELF file whose debug file is looked for. */
struct wanted_debug {
	const struct target_pattern *pattern;
	const char *path;
	const struct elf_file *elf;
};

/*
 * True if fd is the debug file; for a restricted pattern, only one that root alone can change and
 * everybody may read.
 */
static bool is_debug(const void *context, int fd)
{
	const struct wanted_debug *wanted = context;
	struct parse_file file;

	return (!wanted->pattern->is_restricted || is_roots_fd(fd)) &&
	       !file_of(fd, wanted->path, NULL, &file) &&
	       parse_is_debug_of(wanted->pattern->parser, &file, wanted->elf);
}

/* Opens the separate debug file of an ELF file. Returns an fd owned by the caller, or -1. */
static int debug_open(const struct target_pattern *pattern, struct remote_mounts *mounts,
		      const char *path, const struct elf_file *elf)
{
	const struct wanted_debug wanted = { pattern, path, elf };
	const struct debug_file_choice choice = { is_debug, &wanted };
	int fd = debug_file_open_host(mounts, elf, &choice);

	return fd < 0 ? -1 : fd;
}

static int functions_find(int fd, const struct target_pattern *pattern,
			  struct remote_mounts *mounts, char *why, struct targets *out)
{
	_cleanup_(elf_file_fini) struct elf_file elf = {};
	_cleanup_(closep) int debug_fd = -1;
	struct finder finder = { .pattern = pattern, .out = out };
	struct parse_file file;
	int r = file_of(fd, out->path, why, &file);

	if (!r)
		r = parse_elf(pattern->parser, &file, &elf);
	if (r || is_address(pattern))
		return r ? r : address_find(&elf, pattern, out);
	if (pattern->kind == TARGET_USER) {
		if (!elf.has_symtab)
			debug_fd = debug_open(pattern, mounts, out->path, &elf);
		file.debug_fd = debug_fd;
		r = named_find(pattern, &file, out);
		file.debug_fd = -1;
	}
	if (r || out->n)
		return r;
	r = parse_usdt(pattern->parser, &file, on_probe, &finder);
	if (out->n)
		out->kind = TARGET_USDT;
	return r;
}

static int forbidden(const char *path, char *why, size_t size)
{
	snprintf(why, size,
		 "%.300s: only root may trace functions of a file that others than root can change "
		 "or replace, or that not everybody may read",
		 path);
	return -EPERM;
}

/*
 * Returns the path without symbolic links; the caller frees it. NULL if there is no such file, if
 * it is on a remote file system, which realpath() would wait for, or if the path leads into the
 * root directory of another process.
 */
static char *real_path(struct remote_mounts *mounts, const char *path)
{
	_cleanup_(closep) int fd = -1;
	char real[PATH_MAX];

	if (!strncmp(path, "/proc/", 6))
		return NULL;
	fd = target_path_open(mounts, path);
	return fd < 0 || procfs_read_fd(fd, real) ? NULL : strdup(real);
}

/*
 * Checks for a restricted pattern, before its file is looked for, that everybody may see whether
 * there is such a file: otherwise the error would tell. Returns 0; -ENOMEM; or -EPERM with one line
 * in `why` (size bytes).
 */
static int folder_check(struct remote_mounts *mounts, const char *path, char *why, size_t size)
{
	_cleanup_(freep) char *folder = strdup(path), *real = NULL;

	if (!folder)
		return -ENOMEM;
	strrchr(folder, '/')[0] = '\0';
	real = real_path(mounts, folder[0] ? folder : "/");
	return real && is_roots_all_along(real) ? 0 : forbidden(path, why, size);
}

/*
 * Checks for a restricted pattern that only root can change the file or put another one in its
 * place, and that everybody may read it: is_roots() must be true of the file and of each folder on
 * its path. Stores in *real_out the path without symbolic links; the caller frees it. Returns 0 or
 * -EPERM with one line in `why` (size bytes).
 */
static int restricted_check(const struct target_pattern *pattern, struct remote_mounts *mounts,
			    const char *path, char **real_out, char *why, size_t size)
{
	_cleanup_(freep) char *real = real_path(mounts, path);

	if (is_address(pattern)) {
		snprintf(why, size, "%.60s: only root may trace an address; name a function",
			 pattern->name);
		return -EPERM;
	}
	if (!real || !is_roots_all_along(real))
		return forbidden(path, why, size);
	*real_out = TAKE(real);
	return 0;
}

/* Says why a file could not be opened or parsed. `reason` is that of the parser, or empty. */
static const char *search_error(int error, const char *reason)
{
	if (reason[0])
		return reason;
	switch (error) {
	case -ENOEXEC:
		return "not a program or library (ELF)";
	case -EBADMSG:
		return "a broken ELF file";
	case -E2BIG:
		return "too many symbols: trace it by address";
	default:
		return opener_error_text(error);
	}
}

/*
 * Searches one file for functions that match the pattern. Returns 0 even if there are none. On a
 * negative errno, `why` (size bytes) gets one line that says what failed.
 */
static int file_search(const struct target_pattern *pattern, struct remote_mounts *mounts,
		       const char *path, struct targets *out, char *why, size_t size)
{
	_cleanup_(targets_fini) struct targets found = { .kind = pattern->kind };
	_cleanup_(closep) int path_fd = -1, fd = -1;
	char reason[PARSER_WHY_MAX] = "";
	int r = 0;

	if (pattern->is_restricted)
		r = restricted_check(pattern, mounts, path, &found.path, why, size);
	else
		found.path = strdup(path);
	if (r || !found.path)
		return r ? r : -ENOMEM;
	path_fd = target_path_open(mounts, found.path);
	fd = path_fd < 0 ? path_fd : open_path_fd(path_fd, 0);
	r = fd < 0 ? fd : functions_find(fd, pattern, mounts, reason, &found);
	if (r) {
		snprintf(why, size, "%.300s: %s", path, search_error(r, reason));
		return r;
	}
	targets_settle(&found);
	found.fd = path_fd;
	path_fd = -1;
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

static int files_search(const struct target_pattern *pattern, struct remote_mounts *mounts,
			const struct target_files *files, bool *has, struct targets *out, char *why,
			size_t size)
{
	_cleanup_(targets_fini) struct targets found = { .kind = pattern->kind };
	struct targets next;
	size_t i, n = 0;
	int r, failed = 0;

	for (i = 0; i < files->n; i++) {
		r = file_search(pattern, mounts, files->v[i].path, &next, why, size);
		/* Another file may have the only match, and this one, too. */
		if (target_error_is_passing(r))
			return r;
		if (r) {
			failed = r;
			continue;
		}
		has[i] = next.n > 0;
		n += has[i];
		/*
		 * If there is only one file, keep it even without a match, because error messages
		 * have to name it; so too the first whose match cannot be traced.
		 */
		if ((n == 1 && has[i]) || files->n == 1 ||
		    (!n && next.forbidden && !found.forbidden)) {
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

static int user_find(const struct target_pattern *pattern, struct remote_mounts *mounts,
		     const struct target_tasks *tasks, struct targets *out, char *why, size_t size)
{
	_cleanup_(target_files_fini) struct target_files files = {};
	_cleanup_(freep) bool *has = NULL;
	int r = target_files_find(pattern->scope, mounts, tasks, &files, why, size);

	if (r)
		return r;
	has = calloc(files.n, sizeof(*has));
	return has ? files_search(pattern, mounts, &files, has, out, why, size) : -ENOMEM;
}

int target_find_user(const struct target_pattern *pattern, const struct target_tasks *tasks,
		     struct targets *out, char *why, size_t size)
{
	struct remote_mounts *mounts = pattern->reads_remote ? NULL : remote_mounts_new();
	int r = mounts || pattern->reads_remote ? 0 : -ENOMEM;

	if (!r && pattern->is_restricted && pattern->scope[0] == '/')
		r = folder_check(mounts, pattern->scope, why, size);
	if (!r)
		r = user_find(pattern, mounts, tasks, out, why, size);
	remote_mounts_free(mounts);
	return r;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/holder/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/base.h"
#include "common/search.h"
#include "daemon/holder/internal.h"

/* DESCRIPTORS_MAX: the maximum number of descriptors that the pass over all processes keeps. */
enum { DESCRIPTORS_MAX = 1 << 18, TARGET_BYTES = PATH_MAX + 64 };

uint64_t descriptor_name_key(const char *path)
{
	const char *name = strrchr(path, '/');
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (name = name ? name + 1 : path; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return hash;
}

bool descriptor_parse(const char *target, enum descriptor_kind *kind_out, uint64_t *key_out)
{
	unsigned long long inode;

	if (target[0] == '/') {
		*kind_out = DESCRIPTOR_FILE;
		*key_out = descriptor_name_key(target);
		return true;
	}
	if (strcmp(target, "anon_inode:[eventfd]") == 0) {
		*kind_out = DESCRIPTOR_EVENTFD;
		*key_out = 0;
		return true;
	}
	if (sscanf(target, "pipe:[%llu]", &inode) == 1)
		*kind_out = DESCRIPTOR_PIPE;
	else if (sscanf(target, "socket:[%llu]", &inode) == 1)
		*kind_out = DESCRIPTOR_SOCKET;
	else
		return false;
	*key_out = inode;
	return true;
}

bool descriptor_number(const char *text, const char *name, int base, uint64_t *out)
{
	const size_t length = strlen(name);
	char *end;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (strncmp(line, name, length) != 0)
			continue;
		*out = strtoull(line + length, &end, base);
		return end != line + length;
	}
	return false;
}

int descriptor_info_read(const struct descriptor *descriptor, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", descriptor->pid, descriptor->fd);
	return proc_text_read(AT_FDCWD, path, text, size);
}

/* Adds a descriptor of a process. `directory` is its /proc/PID/fd. */
static int descriptor_add(struct descriptors *all, int directory, int32_t pid, const char *name)
{
	struct descriptor one = { .pid = pid, .fd = (int32_t)strtol(name, NULL, 10) };
	char target[TARGET_BYTES], path[64], text[FDINFO_BYTES];
	ssize_t n = readlinkat(directory, name, target, sizeof(target) - 1);

	if (n < 0)
		return 0;
	target[n] = '\0';
	if (!descriptor_parse(target, &one.kind, &one.key))
		return 0;
	if (one.kind == DESCRIPTOR_EVENTFD) {
		snprintf(path, sizeof(path), "../fdinfo/%d", one.fd);
		if (proc_text_read(directory, path, text, sizeof(text)) ||
		    !descriptor_number(text, "eventfd-id:", 10, &one.key))
			return 0;
	}
	if (all->n == DESCRIPTORS_MAX)
		return -ENOSPC;
	if (array_reserve(all->v, all->capacity, all->n + 1))
		return -ENOMEM;
	all->v[all->n++] = one;
	return 0;
}

static int process_read(struct descriptors *all, int32_t pid, int64_t deadline_ns)
{
	struct dirent *entry;
	DIR *directory;
	char path[64];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	directory = proc_directory_open(path);
	while (directory && !r && (entry = proc_number_next(directory)))
		r = clock_ns(CLOCK_MONOTONIC) > deadline_ns
			    ? -ETIMEDOUT
			    : descriptor_add(all, dirfd(directory), pid, entry->d_name);
	if (directory)
		closedir(directory);
	return r;
}

static int descriptor_compare(const void *x, const void *y)
{
	const struct descriptor *a = x, *b = y;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return (a->fd > b->fd) - (a->fd < b->fd);
}

static void all_read(struct descriptors *all, int64_t deadline_ns)
{
	DIR *directory = proc_directory_open("/proc");
	struct dirent *entry;
	int r = directory ? 0 : -ENOENT;

	while (directory && !r && (entry = proc_number_next(directory)))
		r = process_read(all, (int32_t)strtol(entry->d_name, NULL, 10), deadline_ns);
	if (directory)
		closedir(directory);
	if (all->n)
		qsort(all->v, all->n, sizeof(*all->v), descriptor_compare);
	all->is_read = true;
	all->is_whole = !r;
}

const struct descriptor *descriptors_find(struct descriptors *all, int64_t deadline_ns,
					  enum descriptor_kind kind, uint64_t key, size_t *n_out)
{
	const struct descriptor wanted = { .kind = kind, .key = key, .pid = -1 };
	size_t first, n = 0;

	if (!all->is_read)
		all_read(all, deadline_ns);
	first = SEARCH(all->n, i, descriptor_compare(&all->v[i], &wanted) < 0);
	while (first + n < all->n && all->v[first + n].kind == kind && all->v[first + n].key == key)
		n++;
	*n_out = n;
	return n ? &all->v[first] : NULL;
}

void descriptors_fini(struct descriptors *all)
{
	free(TAKE(all->v));
}

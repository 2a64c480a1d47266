/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits for a file system: which file, on which mount, and the process that serves it. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "common/base.h"
#include "daemon/holder/internal.h"
#include "daemon/host/mountinfo.h"

/* MOUNTS_MAX: the maximum number of mounts to look at, because users can make very many. */
enum { MOUNTS_MAX = 4096 };

/* Returns the length of a mount point if a path is below it, else 0. */
static size_t length_below(const char *path, const char *point)
{
	size_t n = strlen(point);

	if (n == 1)
		return 1;
	return strncmp(path, point, n) == 0 && (!path[n] || path[n] == '/') ? n : 0;
}

/*
 * Finds the mount on which a file of the process is, without asking the file system: that with this
 * id or, if the id is -1, the last one of those whose mount points are the longest part of the
 * path. The path may lead to another mount by a symbolic link, which only the file system could
 * tell. Returns false if it is not known.
 */
static bool mount_find(const struct task *task, int64_t id, const char *path, struct mountinfo *out)
{
	_cleanup_(fclosep) FILE *mounts = NULL;
	_cleanup_(freep) char *line = NULL;
	size_t capacity = 0, longest = 0, length;
	char name[64];

	*out = (struct mountinfo){ 0 };
	snprintf(name, sizeof(name), "/proc/%" PRId32 "/mountinfo", task->question->pid);
	mounts = fopen(name, "re");
	for (size_t n = 0; mounts && n < MOUNTS_MAX && getline(&line, &capacity, mounts) > 0; n++) {
		_cleanup_(mountinfo_fini) struct mountinfo one = { 0 };

		if ((id >= 0 && strtoll(line, NULL, 10) != id) || mountinfo_parse(line, &one))
			continue;
		length = id < 0 ? length_below(path, one.point) : 1;
		if (!length || length < longest)
			continue;
		longest = length;
		mountinfo_fini(out);
		*out = one;
		one = (struct mountinfo){ 0 };
	}
	return longest;
}

/* Reads the id of the mount on which a descriptor's file is; -1: not known. */
static int64_t mount_id_read(const struct task *task, int fd)
{
	uint64_t id;

	return task_fdinfo_number(task, fd, "mnt_id:", &id) && id <= INT_MAX ? (int64_t)id : -1;
}

/*
 * Adds the processes that serve a FUSE mount: they have /dev/fuse open with its connection, which
 * is the device number of the mount, in the kernel's own form. fdinfo has it since Linux 6.16
 * ("fuse: add dev id to /dev/fuse fdinfo").
 */
static void servers_add(struct task *task, const struct mountinfo *mount, struct holder_answer *out)
{
	const uint64_t device = (uint64_t)mount->major << 20 | mount->minor;
	const struct descriptor *all;
	bool is_said = false;
	uint64_t connection;
	size_t n;

	all = task_descriptors(task, DESCRIPTOR_FILE, descriptor_name_key("/dev/fuse"), &n);
	for (size_t i = 0; i < n && !task_is_late(task); i++) {
		char text[FDINFO_BYTES];

		if (descriptor_info_read(&all[i], text, sizeof(text)) ||
		    !descriptor_number(text, "fuse_connection:", 10, &connection))
			continue;
		is_said = true;
		if (connection == device)
			holder_add_process(out, all[i].pid);
	}
	if (task_is_late(task) || !task->search->descriptors.is_whole)
		out->unknown = holder_took_too_long;
	else if (!out->n)
		out->unknown = n && !is_said ? "this kernel does not say who serves a FUSE mount"
					     : "no process was found that serves the mount";
}

/*
 * True if a thread that waits for a FUSE server and named a path may wait for that of the mount.
 */
static bool is_served(const struct task *task, const char *path, const struct mountinfo *mount)
{
	return task->question->reason == REASON_FUSE && strncmp(mount->type, "fuse", 4) == 0 &&
	       !strstr(path, "/../");
}

/*
 * True if the system call looks a name up in a directory, or changes it there, and no more: what it
 * locks is the directory. One that cuts a file off may wait for the file as well.
 */
static bool is_of_directory(const struct call *call)
{
	switch (call->number) {
	case SYS_open:
		return !(call->args[1] & O_TRUNC);
	case SYS_openat:
		return !(call->args[2] & O_TRUNC);
	case SYS_stat:
	case SYS_lstat:
	case SYS_newfstatat:
	case SYS_statx:
	case SYS_access:
	case SYS_faccessat:
	case SYS_faccessat2:
	case SYS_mkdir:
	case SYS_mkdirat:
	case SYS_mknod:
	case SYS_mknodat:
		return true;
	}
	return false;
}

/* Cuts the last name off a path, unless only "/" would be left. */
static void path_cut(char *path)
{
	char *last = strrchr(path, '/');

	if (last && last > path && last[1])
		*last = '\0';
}

void holder_find_slow_file(struct task *task, struct holder_answer *out)
{
	bool writes = task->question->reason != REASON_FILE_READ;
	_cleanup_(mountinfo_fini) struct mountinfo mount = { 0 };
	_cleanup_(freep) char *path = NULL;
	char target[TASK_TARGET_BYTES];
	int fd = task_descriptor(task, writes, target, sizeof(target));
	int64_t id = -1;

	if (fd >= 0 && target[0] == '/') {
		path = strdup(target);
		id = mount_id_read(task, fd);
	} else {
		path = task_path(task);
		if (path && task->question->reason == REASON_INODE_LOCK &&
		    is_of_directory(&task->call))
			path_cut(path);
	}
	if (!path)
		return;
	if (!mount_find(task, id, path, &mount) || (id < 0 && !is_served(task, path, &mount))) {
		out->object = TAKE(path);
		return;
	}
	if (asprintf(&out->object, "%s (%s)", path, mount.type) < 0)
		out->object = NULL;
	if (task->question->reason == REASON_FUSE)
		servers_add(task, &mount, out);
}

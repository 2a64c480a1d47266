/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which descriptor or path the system call names that a thread is in. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/holder/internal.h"

/* PAGE: a path is read up to the end of the smallest page. */
enum { NO_DIRECTORY = 6, PAGE = 4096 };

/* The argument of a system call that is the descriptor it reads from or writes to. */
static const struct {
	long number;
	unsigned char reads, writes;
} descriptor_calls[] = {
	{ SYS_read, 0, 0 },	    { SYS_readv, 0, 0 },
	{ SYS_pread64, 0, 0 },	    { SYS_preadv, 0, 0 },
	{ SYS_preadv2, 0, 0 },	    { SYS_write, 0, 0 },
	{ SYS_writev, 0, 0 },	    { SYS_pwrite64, 0, 0 },
	{ SYS_pwritev, 0, 0 },	    { SYS_pwritev2, 0, 0 },
	{ SYS_vmsplice, 0, 0 },	    { SYS_recvfrom, 0, 0 },
	{ SYS_recvmsg, 0, 0 },	    { SYS_recvmmsg, 0, 0 },
	{ SYS_sendto, 0, 0 },	    { SYS_sendmsg, 0, 0 },
	{ SYS_sendmmsg, 0, 0 },	    { SYS_connect, 0, 0 },
	{ SYS_accept, 0, 0 },	    { SYS_accept4, 0, 0 },
	{ SYS_fsync, 0, 0 },	    { SYS_fdatasync, 0, 0 },
	{ SYS_syncfs, 0, 0 },	    { SYS_sync_file_range, 0, 0 },
	{ SYS_ftruncate, 0, 0 },    { SYS_fallocate, 0, 0 },
	{ SYS_getdents64, 0, 0 },   { SYS_fstat, 0, 0 },
	{ SYS_close, 0, 0 },	    { SYS_ioctl, 0, 0 },
	{ SYS_splice, 0, 2 },	    { SYS_tee, 0, 1 },
	{ SYS_sendfile, 1, 0 },	    { SYS_copy_file_range, 0, 2 },
	{ SYS_fcntl, 0, 0 },	    { SYS_flock, 0, 0 },
	{ SYS_mq_timedsend, 0, 0 }, { SYS_mq_timedreceive, 0, 0 },
};

int task_descriptor(const struct task *task, bool writes, char *target, size_t size)
{
	char name[64];
	ssize_t n;

	for (size_t i = 0; i < ARRAY_SIZE(descriptor_calls); i++) {
		if (descriptor_calls[i].number != task->call.number)
			continue;
		snprintf(name, sizeof(name), "fd/%" PRIu64,
			 task->call.args[writes ? descriptor_calls[i].writes
						: descriptor_calls[i].reads]);
		n = readlinkat(task->dir_fd, name, target, size - 1);
		if (n < 0)
			return -errno;
		target[n] = '\0';
		return (int)task->call
			.args[writes ? descriptor_calls[i].writes : descriptor_calls[i].reads];
	}
	return -ENOENT;
}

/* The arguments of system calls that are a path, and the directory from which it goes. */
static const struct {
	long number;
	unsigned char directory, path;
} path_calls[] = {
	{ SYS_open, NO_DIRECTORY, 0 },
	{ SYS_creat, NO_DIRECTORY, 0 },
	{ SYS_stat, NO_DIRECTORY, 0 },
	{ SYS_lstat, NO_DIRECTORY, 0 },
	{ SYS_access, NO_DIRECTORY, 0 },
	{ SYS_readlink, NO_DIRECTORY, 0 },
	{ SYS_unlink, NO_DIRECTORY, 0 },
	{ SYS_rmdir, NO_DIRECTORY, 0 },
	{ SYS_mkdir, NO_DIRECTORY, 0 },
	{ SYS_rename, NO_DIRECTORY, 0 },
	{ SYS_chdir, NO_DIRECTORY, 0 },
	{ SYS_truncate, NO_DIRECTORY, 0 },
	{ SYS_chmod, NO_DIRECTORY, 0 },
	{ SYS_chown, NO_DIRECTORY, 0 },
	{ SYS_statfs, NO_DIRECTORY, 0 },
	{ SYS_execve, NO_DIRECTORY, 0 },
	{ SYS_getxattr, NO_DIRECTORY, 0 },
	{ SYS_lgetxattr, NO_DIRECTORY, 0 },
	{ SYS_openat, 0, 1 },
	{ SYS_openat2, 0, 1 },
	{ SYS_newfstatat, 0, 1 },
	{ SYS_statx, 0, 1 },
	{ SYS_faccessat, 0, 1 },
	{ SYS_faccessat2, 0, 1 },
	{ SYS_readlinkat, 0, 1 },
	{ SYS_unlinkat, 0, 1 },
	{ SYS_mkdirat, 0, 1 },
	{ SYS_renameat, 0, 1 },
	{ SYS_renameat2, 0, 1 },
	{ SYS_fchmodat, 0, 1 },
	{ SYS_fchownat, 0, 1 },
	{ SYS_execveat, 0, 1 },
	{ SYS_name_to_handle_at, 0, 1 },
};

/* Reads a path from the memory of the process, which ends within the page where it begins. */
static char *path_read(const struct task *task, uint64_t address)
{
	char text[PATH_MAX];
	size_t room = PAGE - address % PAGE;

	if (room > sizeof(text))
		room = sizeof(text);
	if (task_memory_read(task, address, text, room) || !memchr(text, '\0', room) || !text[0])
		return NULL;
	return strdup(text);
}

/* Puts the directory before a path that does not begin at the root. Frees `path`. */
static char *path_complete(const struct task *task, char *path, uint64_t directory)
{
	_cleanup_(freep) char *given = path;
	char name[64] = "cwd", target[TASK_TARGET_BYTES], *whole;
	ssize_t n;

	if (!given || given[0] == '/')
		return TAKE(given);
	if ((int)directory != AT_FDCWD)
		snprintf(name, sizeof(name), "fd/%d", (int)directory);
	n = readlinkat(task->dir_fd, name, target, sizeof(target) - 1);
	if (n <= 0 || target[0] != '/')
		return NULL;
	target[n] = '\0';
	return asprintf(&whole, "%s/%s", n > 1 ? target : "", given) < 0 ? NULL : whole;
}

char *task_path(const struct task *task)
{
	const uint64_t *args = task->call.args;

	for (size_t i = 0; i < ARRAY_SIZE(path_calls); i++)
		if (path_calls[i].number == task->call.number)
			return path_complete(task, path_read(task, args[path_calls[i].path]),
					     path_calls[i].directory == NO_DIRECTORY
						     ? (uint64_t)AT_FDCWD
						     : args[path_calls[i].directory]);
	return NULL;
}

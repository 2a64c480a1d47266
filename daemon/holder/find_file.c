/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits for descriptors that are no sockets: pipes, FIFOs, eventfds, and files that are slow. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/holder/internal.h"

/* MOUNTS_MAX: the maximum number of mounts to look at, because users can make very many. */
enum { FDINFO_BYTES = 1024, MOUNTS_MAX = 4096, TYPE_BYTES = 64 };

/* The argument of a system call that is the descriptor it reads from or writes to. */
static const struct {
	long number;
	unsigned char reads, writes;
} calls[] = {
	{ SYS_read, 0, 0 },	  { SYS_readv, 0, 0 },
	{ SYS_pread64, 0, 0 },	  { SYS_preadv, 0, 0 },
	{ SYS_preadv2, 0, 0 },	  { SYS_write, 0, 0 },
	{ SYS_writev, 0, 0 },	  { SYS_pwrite64, 0, 0 },
	{ SYS_pwritev, 0, 0 },	  { SYS_pwritev2, 0, 0 },
	{ SYS_vmsplice, 0, 0 },	  { SYS_recvfrom, 0, 0 },
	{ SYS_recvmsg, 0, 0 },	  { SYS_recvmmsg, 0, 0 },
	{ SYS_sendto, 0, 0 },	  { SYS_sendmsg, 0, 0 },
	{ SYS_sendmmsg, 0, 0 },	  { SYS_connect, 0, 0 },
	{ SYS_accept, 0, 0 },	  { SYS_accept4, 0, 0 },
	{ SYS_fsync, 0, 0 },	  { SYS_fdatasync, 0, 0 },
	{ SYS_syncfs, 0, 0 },	  { SYS_sync_file_range, 0, 0 },
	{ SYS_ftruncate, 0, 0 },  { SYS_fallocate, 0, 0 },
	{ SYS_getdents64, 0, 0 }, { SYS_fstat, 0, 0 },
	{ SYS_close, 0, 0 },	  { SYS_ioctl, 0, 0 },
	{ SYS_splice, 0, 2 },	  { SYS_tee, 0, 1 },
	{ SYS_sendfile, 1, 0 },	  { SYS_copy_file_range, 0, 2 },
	{ SYS_fcntl, 0, 0 },	  { SYS_flock, 0, 0 },
};

int task_descriptor(const struct task *task, bool writes, char *target, size_t size)
{
	char name[64];
	ssize_t n;

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (calls[i].number != task->call.number)
			continue;
		snprintf(name, sizeof(name), "fd/%" PRIu64,
			 task->call.args[writes ? calls[i].writes : calls[i].reads]);
		n = readlinkat(task->dir_fd, name, target, size - 1);
		if (n < 0)
			return -errno;
		target[n] = '\0';
		return (int)task->call.args[writes ? calls[i].writes : calls[i].reads];
	}
	return -ENOENT;
}

/*
 * Reads the device and inode of a descriptor of a process, as the kernel has them in memory.
 * Returns false unless it is a FIFO.
 */
static bool fifo_read(int32_t pid, int fd, struct statx *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/fd/%d", pid, fd);
	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_INO,
		     out) == 0 &&
	       S_ISFIFO(out->stx_mode);
}

static bool is_same_fifo(const struct descriptor *other, const struct statx *fifo)
{
	struct statx found;

	return fifo_read(other->pid, other->fd, &found) && found.stx_ino == fifo->stx_ino &&
	       found.stx_dev_major == fifo->stx_dev_major &&
	       found.stx_dev_minor == fifo->stx_dev_minor;
}

/* True if a descriptor of a process may be used to write, or to read. */
static bool is_open_for(const struct descriptor *descriptor, bool writing)
{
	char path[64], text[FDINFO_BYTES];
	uint64_t flags;

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/fdinfo/%" PRId32, descriptor->pid,
		 descriptor->fd);
	if (proc_text_read(AT_FDCWD, path, text, sizeof(text)) ||
	    !descriptor_number(text, "flags:", 8, &flags))
		return false;
	return (flags & O_ACCMODE) == O_RDWR ||
	       (flags & O_ACCMODE) == (uint64_t)(writing ? O_WRONLY : O_RDONLY);
}

/* The processes that have the other end of a pipe or FIFO open; `fifo` is NULL for a pipe. */
static void ends_add(struct task *task, enum descriptor_kind kind, uint64_t key,
		     const struct statx *fifo, bool writers, struct holder_answer *out)
{
	const struct descriptor *others;
	bool has_own = false;
	size_t n;

	others = task_descriptors(task, kind, key, &n);
	for (size_t i = 0; i < n && !task_is_late(task); i++) {
		if ((fifo && !is_same_fifo(&others[i], fifo)) ||
		    (kind != DESCRIPTOR_EVENTFD && !is_open_for(&others[i], writers)))
			continue;
		if (others[i].pid == task->question->pid)
			has_own = true;
		else
			holder_add_process(out, others[i].pid);
	}
	if (task_is_late(task) || !task->search->descriptors.is_whole)
		out->unknown = holder_took_too_long;
	else if (!out->n)
		out->unknown = has_own ? "only the process itself has the other end open"
				       : "no process was found that has the other end open";
}

void holder_find_pipe(struct task *task, struct holder_answer *out)
{
	bool reads = task->question->reason == REASON_PIPE_READ;
	enum descriptor_kind kind;
	char target[TASK_TARGET_BYTES];
	struct statx fifo;
	uint64_t key;
	int fd = task_descriptor(task, !reads, target, sizeof(target));

	if (fd < 0 || !descriptor_parse(target, &kind, &key) ||
	    (kind != DESCRIPTOR_PIPE && kind != DESCRIPTOR_FILE) ||
	    (kind == DESCRIPTOR_FILE && !fifo_read(task->question->pid, fd, &fifo))) {
		out->unknown = holder_went_on;
		return;
	}
	if (kind == DESCRIPTOR_FILE)
		out->object = strdup(target);
	else if (asprintf(&out->object, "pipe %" PRIu64, key) < 0)
		out->object = NULL;
	ends_add(task, kind, key, kind == DESCRIPTOR_FILE ? &fifo : NULL, reads, out);
}

void holder_find_eventfd(struct task *task, struct holder_answer *out)
{
	char target[TASK_TARGET_BYTES], name[64], text[FDINFO_BYTES];
	int fd = task_descriptor(task, false, target, sizeof(target));
	uint64_t id;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	if (fd < 0 || proc_text_read(task->dir_fd, name, text, sizeof(text)) ||
	    !descriptor_number(text, "eventfd-id:", 10, &id)) {
		out->unknown = holder_went_on;
		return;
	}
	if (asprintf(&out->object, "eventfd %" PRIu64, id) < 0)
		out->object = NULL;
	ends_add(task, DESCRIPTOR_EVENTFD, id, NULL, true, out);
}

/* Reads a path from the memory of the process, which ends within the page where it begins. */
static char *path_read(const struct task *task, uint64_t address)
{
	char text[PATH_MAX];
	size_t room = 4096 - address % 4096;

	if (room > sizeof(text))
		room = sizeof(text);
	if (task_memory_read(task, address, text, room) || !memchr(text, '\0', room) ||
	    text[0] != '/')
		return NULL;
	return strdup(text);
}

/* The path in the call that opens a file: the file cannot be asked about while it is not open. */
static char *opened_path(const struct task *task)
{
	switch (task->call.number) {
	case SYS_open:
		return path_read(task, task->call.args[0]);
	case SYS_openat:
	case SYS_openat2:
		return path_read(task, task->call.args[1]);
	default:
		return NULL;
	}
}

void holder_find_fifo_open(struct task *task, struct holder_answer *out)
{
	out->object = opened_path(task);
	out->unknown = "no process has the other end open";
}

/*
 * Reads the type of the file system in which a descriptor's file is, such as "fuse.sshfs", without
 * asking the file system itself. Returns false if it is not known.
 */
static bool type_read(const struct task *task, int fd, char type[static TYPE_BYTES])
{
	_cleanup_(fclosep) FILE *mounts = NULL;
	_cleanup_(freep) char *line = NULL;
	char name[64], text[FDINFO_BYTES];
	const char *found = NULL;
	size_t capacity = 0;
	uint64_t id;

	snprintf(name, sizeof(name), "/proc/%" PRId32 "/mountinfo", task->question->pid);
	mounts = fopen(name, "re");
	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	if (!mounts || proc_text_read(task->dir_fd, name, text, sizeof(text)) ||
	    !descriptor_number(text, "mnt_id:", 10, &id))
		return false;
	for (size_t n = 0; !found && n < MOUNTS_MAX && getline(&line, &capacity, mounts) > 0; n++)
		if (strtoull(line, NULL, 10) == id)
			found = strstr(line, " - ");
	return found && sscanf(found, " - %63s", type) == 1;
}

void holder_find_slow_file(struct task *task, struct holder_answer *out)
{
	bool writes = task->question->reason != REASON_FILE_READ;
	char target[TASK_TARGET_BYTES], type[TYPE_BYTES];
	int fd = task_descriptor(task, writes, target, sizeof(target));

	if (fd < 0 || target[0] != '/')
		out->object = opened_path(task);
	else if (!type_read(task, fd, type))
		out->object = strdup(target);
	else if (asprintf(&out->object, "%s (%s)", target, type) < 0)
		out->object = NULL;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits for descriptors that are no sockets: pipes, FIFOs, eventfds and POSIX message queues. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/holder/internal.h"

bool descriptor_file_read(int32_t pid, int fd, struct statx *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/fd/%d", pid, fd);
	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_INO,
		     out) == 0;
}

static bool is_same_file(const struct descriptor *other, const struct statx *file)
{
	struct statx found;

	return descriptor_file_read(other->pid, other->fd, &found) &&
	       found.stx_ino == file->stx_ino && found.stx_dev_major == file->stx_dev_major &&
	       found.stx_dev_minor == file->stx_dev_minor;
}

/* True if a descriptor of a process may be used to write, or to read. */
static bool is_open_for(const struct descriptor *descriptor, bool writing)
{
	char text[FDINFO_BYTES];
	uint64_t flags;

	if (descriptor_info_read(descriptor, text, sizeof(text)) ||
	    !descriptor_number(text, "flags:", 8, &flags))
		return false;
	return (flags & O_ACCMODE) == O_RDWR ||
	       (flags & O_ACCMODE) == (uint64_t)(writing ? O_WRONLY : O_RDONLY);
}

/* Says which descriptors are the other end of a file. */
struct file_end {
	const struct statx *file; /* NULL if the key is of no other file */
	bool writers;
};

static bool is_file_end(const struct task *task, const struct descriptor *other, const void *what)
{
	const struct file_end *end = what;

	return (!end->file || is_same_file(other, end->file)) &&
	       (other->kind == DESCRIPTOR_EVENTFD || is_open_for(other, end->writers));
}

/* The processes that have the other end open; `file` is NULL if the key is of no other file. */
static void ends_add(struct task *task, enum descriptor_kind kind, uint64_t key,
		     const struct statx *file, bool writers, struct holder_answer *out)
{
	const struct file_end end = { file, writers };

	holder_add_ends(task, kind, key, is_file_end, &end, out);
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
	    (kind == DESCRIPTOR_FILE &&
	     !(descriptor_file_read(task->question->pid, fd, &fifo) && S_ISFIFO(fifo.stx_mode)))) {
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
	char target[TASK_TARGET_BYTES];
	int fd = task_descriptor(task, false, target, sizeof(target));
	uint64_t id;

	if (fd < 0 || !task_fdinfo_number(task, fd, "eventfd-id:", &id)) {
		out->unknown = holder_went_on;
		return;
	}
	if (asprintf(&out->object, "eventfd %" PRIu64, id) < 0)
		out->object = NULL;
	ends_add(task, DESCRIPTOR_EVENTFD, id, NULL, true, out);
}

void holder_find_mq(struct task *task, struct holder_answer *out)
{
	const bool receives = task->call.number == SYS_mq_timedreceive;
	char target[TASK_TARGET_BYTES];
	struct statx file;
	int fd = task_descriptor(task, false, target, sizeof(target));

	if (fd < 0 || target[0] != '/' || !descriptor_file_read(task->question->pid, fd, &file)) {
		out->unknown = holder_went_on;
		return;
	}
	if (asprintf(&out->object, "POSIX queue %s", target) < 0)
		out->object = NULL;
	ends_add(task, DESCRIPTOR_FILE, descriptor_name_key(target), &file, receives, out);
}

void holder_find_fifo_open(struct task *task, struct holder_answer *out)
{
	out->object = task_path(task);
	out->unknown = "no process has the other end open";
}

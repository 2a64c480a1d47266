/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/holder/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/host/procfs.h"

/* PID_MAX: PID_MAX_LIMIT of 64-bit kernels. */
enum { PID_MAX = 4194304, PATH_BYTES = PATH_MAX + 64 };

const char holder_went_on[] = "the thread went on meanwhile";
const char holder_took_too_long[] = "the search took too long";
const char holder_not_reached[] = "stackd looks up at most 64 waits at once, for half a second";
const char holder_unread[] = "the user stack that says what the futex is has not been read yet";

_Static_assert(HOLDER_LOOKUPS == 64, "the text above has this number");

bool holder_is_missed(const char *unknown)
{
	return unknown &&
	       (strcmp(unknown, holder_went_on) == 0 ||
		strcmp(unknown, holder_took_too_long) == 0 ||
		strcmp(unknown, holder_not_reached) == 0 || strcmp(unknown, holder_unread) == 0);
}

bool task_is_late(const struct task *task)
{
	return clock_ns(CLOCK_MONOTONIC) > task->search->deadline_ns;
}

/* Reads the system call that the thread is in. Returns -EAGAIN if it is in none. */
static int call_read(int dir_fd, struct call *out)
{
	uint64_t *a = out->args;
	char text[256];
	int r = proc_text_read(dir_fd, "syscall", text, sizeof(text));

	if (r)
		return r;
	if (sscanf(text, "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
		   &out->number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5]) != 7)
		return -EAGAIN;
	return out->number < 0 ? -EAGAIN : 0;
}

bool task_call_is_same(const struct task *task)
{
	struct call now;

	return !call_read(task->dir_fd, &now) && now.number == task->call.number &&
	       memcmp(now.args, task->call.args, sizeof(now.args)) == 0;
}

int task_open(struct task *task)
{
	const struct holder_question *question = task->question;
	int32_t parent;
	uint64_t ticks;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/task/%" PRId32, question->pid,
		 question->tid);
	task->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (task->dir_fd < 0)
		return -errno;
	r = proc_stat_read(task->dir_fd, "stat", &parent, &ticks);
	if (r)
		return r;
	return ticks == procfs_ticks(question->start_boot_ns) ? 0 : -ESRCH;
}

int task_call_read(struct task *task)
{
	return call_read(task->dir_fd, &task->call);
}

const struct descriptor *task_descriptors(const struct task *task, enum descriptor_kind kind,
					  uint64_t key, size_t *n_out)
{
	return descriptors_find(&task->search->descriptors, search_part_ns(task->search), kind, key,
				n_out);
}

static void comm_read(int32_t pid, int32_t tid, char comm[static HOLDER_COMM])
{
	char path[64], text[64];

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/task/%" PRId32 "/comm", pid, tid);
	if (proc_text_read(AT_FDCWD, path, text, sizeof(text)))
		text[0] = '\0';
	/* A name may have newlines; one more follows it. */
	if (text[0])
		text[strlen(text) - 1] = '\0';
	snprintf(comm, HOLDER_COMM, "%.*s", HOLDER_COMM - 1, text);
}

static bool is_single_threaded(int32_t pid)
{
	char path[64], text[4096];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/status", pid);
	if (proc_text_read(AT_FDCWD, path, text, sizeof(text)))
		return false;
	at = strstr(text, "\nThreads:\t1\n");
	return at != NULL;
}

void holder_add(struct holder_answer *out, int32_t pid, int32_t tid)
{
	struct holder *holder;

	for (size_t i = 0; i < out->n; i++)
		if (out->holders[i].pid == pid && (!tid || out->holders[i].tid == tid))
			return;
	if (out->n == HOLDER_SHOWN) {
		out->more++;
		return;
	}
	holder = &out->holders[out->n++];
	holder->pid = pid;
	holder->tid = tid ? tid : is_single_threaded(pid) ? pid : 0;
	comm_read(pid, tid ? tid : pid, holder->comm);
}

void holder_add_process(struct holder_answer *out, int32_t pid)
{
	/* Descriptors are sorted by process, and a process may have several. */
	if (pid == out->last_pid)
		return;
	out->last_pid = pid;
	holder_add(out, pid, 0);
}

void holder_add_ends(const struct task *task, enum descriptor_kind kind, uint64_t key,
		     bool (*is_end)(const struct task *task, const struct descriptor *descriptor,
				    const void *what),
		     const void *what, struct holder_answer *out)
{
	const struct descriptor *others;
	bool has_own = false;
	size_t n;

	others = task_descriptors(task, kind, key, &n);
	for (size_t i = 0; i < n && !task_is_late(task); i++) {
		if (!is_end(task, &others[i], what))
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

int task_file(const struct task *task, uint64_t fd, char **path_out, uint64_t *inode_out)
{
	char name[64], text[4096], *at;
	char path[PATH_BYTES];
	ssize_t n;
	int r;

	snprintf(name, sizeof(name), "fdinfo/%" PRIu64, fd);
	r = proc_text_read(task->dir_fd, name, text, sizeof(text));
	at = r ? NULL : strstr(text, "\nino:");
	if (!at || sscanf(at, " ino: %" SCNu64, inode_out) != 1)
		return r ? r : -ENODATA;
	snprintf(name, sizeof(name), "fd/%" PRIu64, fd);
	n = readlinkat(task->dir_fd, name, path, sizeof(path) - 1);
	if (n < 0)
		return -errno;
	path[n] = '\0';
	*path_out = strdup(path);
	return *path_out ? 0 : -ENOMEM;
}

bool task_fdinfo_number(const struct task *task, int fd, const char *name, uint64_t *out)
{
	char path[64], text[FDINFO_BYTES];

	snprintf(path, sizeof(path), "fdinfo/%d", fd);
	return !proc_text_read(task->dir_fd, path, text, sizeof(text)) &&
	       descriptor_number(text, name, 10, out);
}

/* Opens a status file, NULL if that fails. */
static FILE *status_open(int dir_fd, const char *path)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

size_t status_numbers(int dir_fd, const char *path, const char *name,
		      int32_t out[static NAMESPACES_MAX])
{
	_cleanup_(fclosep) FILE *f = status_open(dir_fd, path);
	_cleanup_(freep) char *line = NULL;
	size_t capacity = 0, n;
	char *at, *end;

	/* A user may be in so many groups that their line is longer than all others. */
	do {
		if (!f || getline(&line, &capacity, f) <= 0)
			return 0;
	} while (strncmp(line, name, strlen(name)) != 0);
	at = line + strlen(name);
	for (n = 0; n < NAMESPACES_MAX; n++, at = end) {
		out[n] = (int32_t)strtol(at, &end, 10);
		if (end == at)
			break;
	}
	return n;
}

int32_t status_number(int dir_fd, const char *path, const char *name)
{
	int32_t numbers[NAMESPACES_MAX];

	return status_numbers(dir_fd, path, name, numbers) ? numbers[0] : 0;
}

/*
 * Reads from a status file by which id the thread's own pid namespace knows the thread. Returns
 * false if that is the initial namespace, where it has no other id, or if it cannot be read.
 */
static bool own_tid_read(int dir_fd, const char *name, uint32_t *out)
{
	int32_t ids[NAMESPACES_MAX];
	size_t n = status_numbers(dir_fd, name, "NSpid:", ids);

	if (n > 1)
		*out = (uint32_t)ids[n - 1];
	return n > 1;
}

bool task_is_in_own_namespace(const struct task *task)
{
	uint32_t own_tid;

	return own_tid_read(task->dir_fd, "status", &own_tid);
}

bool thread_is_in_own_namespace(int32_t tid)
{
	uint32_t own_tid;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/status", tid);
	return own_tid_read(AT_FDCWD, path, &own_tid);
}

int32_t task_thread(const struct task *task, uint32_t wanted)
{
	char path[64], name[300];
	struct dirent *entry;
	int32_t found = 0;
	uint32_t own_tid;
	DIR *directory;

	if (!wanted || wanted > PID_MAX)
		return 0;
	if (!task_is_in_own_namespace(task))
		return procfs_has_thread((uint32_t)task->question->pid, wanted) ? (int32_t)wanted
										: 0;
	snprintf(path, sizeof(path), "/proc/%" PRId32 "/task", task->question->pid);
	directory = proc_directory_open(path);
	while (directory && !found && !task_is_late(task) &&
	       (entry = proc_number_next(directory))) {
		snprintf(name, sizeof(name), "%s/status", entry->d_name);
		if (own_tid_read(dirfd(directory), name, &own_tid) && own_tid == wanted)
			found = (int32_t)strtol(entry->d_name, NULL, 10);
	}
	if (directory)
		closedir(directory);
	return found;
}

int task_memory_read(const struct task *task, uint64_t address, void *buffer, size_t size)
{
	_cleanup_(closep) int fd = openat(task->dir_fd, "mem", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	if (address > INT64_MAX)
		return -EFAULT;
	n = pread(fd, buffer, size, (off_t)address);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EFAULT;
}

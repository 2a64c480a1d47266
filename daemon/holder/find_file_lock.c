/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/holder/internal.h"
#include "daemon/host/file_lock.h"

/*
 * LOCKS_BYTES, INFO_BYTES: as much of /proc/locks (some 20,000 locks) and of a descriptor's
 * fdinfo, with a line for each of its locks, is read. FDS_MAX: the maximum number of descriptors
 * that are looked at for one lock.
 */
enum { LOCKS_BYTES = 1 << 20, INFO_BYTES = 1 << 18, FDS_MAX = 100000 };

/* True if one of the locks in the text of a fdinfo file is `held`. */
static bool text_has_lock(const char *text, const struct file_lock *held)
{
	struct file_lock lock;

	for (const char *at = strstr(text, "lock:"); at; at = strstr(at + 1, "lock:"))
		if ((held->is_lease ? file_lease_parse(at, &lock) : file_lock_parse(at, &lock)) &&
		    !lock.is_waiting && lock.inode == held->inode && lock.major == held->major &&
		    lock.minor == held->minor && lock.is_flock == held->is_flock &&
		    lock.is_of_file == held->is_of_file &&
		    lock.is_exclusive == held->is_exclusive && lock.start == held->start)
			return true;
	return false;
}

/*
 * Returns a descriptor of the process that has the lock, -1 if none has. `text` is a buffer of
 * INFO_BYTES. Takes the descriptors from *fds_left. Ends early at the deadline.
 */
static int locked_descriptor(const struct task *task, int32_t pid, const struct file_lock *held,
			     char *text, size_t *fds_left)
{
	char path[64];
	struct dirent *entry;
	int found = -1;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/fdinfo", pid);
	directory = proc_directory_open(path);
	while (directory && found < 0 && *fds_left && !task_is_late(task) &&
	       (entry = proc_number_next(directory))) {
		(*fds_left)--;
		if (!proc_text_read(dirfd(directory), entry->d_name, text, INFO_BYTES) &&
		    text_has_lock(text, held))
			found = (int)strtol(entry->d_name, NULL, 10);
	}
	if (directory)
		closedir(directory);
	return found;
}

/*
 * Adds the other processes that have the open file with the lock, which is descriptor `fd` of
 * held->pid: mostly its children. The lock is held until one of them lets go or all have closed it.
 */
static void sharers_add(const struct task *task, const struct file_lock *held, int fd, char *text,
			struct holder_answer *out)
{
	char name[64], target[TASK_TARGET_BYTES];
	const struct descriptor *others;
	enum descriptor_kind kind;
	uint64_t key;
	ssize_t length;
	size_t n;

	snprintf(name, sizeof(name), "/proc/%" PRId32 "/fd/%d", held->pid, fd);
	length = readlink(name, target, sizeof(target) - 1);
	target[length < 0 ? 0 : length] = '\0';
	if (!descriptor_parse(target, &kind, &key)) {
		out->unknown = holder_went_on;
		return;
	}
	others = task_descriptors(task, kind, key, &n);
	for (size_t i = 0; i < n && !task_is_late(task); i++) {
		if (others[i].pid != held->pid &&
		    !descriptor_info_read(&others[i], text, INFO_BYTES) &&
		    text_has_lock(text, held))
			holder_add_process(out, others[i].pid);
	}
	if (task_is_late(task) || !task->search->descriptors.is_whole)
		out->unknown = holder_took_too_long;
}

/*
 * Adds the processes that have the lock. /proc/locks names the one that asked for it, which may
 * have ended, or have handed the file on; of a lock that belongs to an open file it names none.
 * Then all processes are searched. A lock of a process (POSIX) is that process's only.
 */
static void lock_holders_add(const struct task *task, const struct file_lock *held,
			     struct holder_answer *out)
{
	_cleanup_(freep) char *text = malloc(INFO_BYTES);
	size_t fds_left = FDS_MAX;
	struct dirent *entry;
	DIR *directory;
	int fd;

	if (!text || task_is_late(task)) {
		out->unknown = holder_took_too_long;
		return;
	}
	fd = held->pid > 0 ? locked_descriptor(task, held->pid, held, text, &fds_left) : -1;
	if (fd >= 0) {
		holder_add(out, held->pid, 0);
		if (held->is_flock)
			sharers_add(task, held, fd, text, out);
		return;
	}
	directory = proc_directory_open("/proc");
	while (directory && (entry = proc_number_next(directory))) {
		int32_t pid = (int32_t)strtol(entry->d_name, NULL, 10);

		if (locked_descriptor(task, pid, held, text, &fds_left) >= 0)
			holder_add(out, pid, 0);
		else if (!fds_left || task_is_late(task))
			out->unknown = holder_took_too_long;
		if (out->unknown)
			break;
	}
	if (directory)
		closedir(directory);
}

/*
 * Sets *out to the lock that the thread waits for, as a line of /proc/locks says. Returns the
 * number of different ones that it may be: such a line names the process, but not the thread, and
 * of locks of open files neither.
 */
static size_t wanted_find(const struct task *task, const char *text, uint64_t inode,
			  struct file_lock *out)
{
	const bool is_flock = task->question->reason == REASON_FLOCK;
	const bool is_of_file = !is_flock && task->call.args[1] == F_OFD_SETLKW;
	struct file_lock lock;
	size_t n = 0;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (!file_lock_parse(line, &lock) || !lock.is_waiting || lock.inode != inode ||
		    lock.is_flock != is_flock || lock.is_of_file != is_of_file ||
		    (!is_of_file && lock.pid != task->question->pid))
			continue;
		if (!n || lock.major != out->major || lock.minor != out->minor ||
		    lock.start != out->start || lock.end != out->end ||
		    lock.is_exclusive != out->is_exclusive)
			n++;
		*out = lock;
	}
	return n;
}

/* Why not all holders are known where /proc/locks is longer than LOCKS_BYTES. */
static const char locks_are_cut[] = "the kernel lists more locks than stackd reads (1 MiB)";

/* Cuts a text that fills LOCKS_BYTES after its last whole line. Returns false if it is shorter. */
static bool text_cut(char *text)
{
	char *end = strrchr(text, '\n');

	if (strlen(text) + 1 < LOCKS_BYTES)
		return false;
	if (end)
		end[1] = '\0';
	return true;
}

void holder_find_file_lock(struct task *task, struct holder_answer *out)
{
	long number = task->question->reason == REASON_FLOCK ? SYS_flock : SYS_fcntl;
	_cleanup_(freep) char *text = malloc(LOCKS_BYTES);
	struct file_lock wanted, held;
	uint64_t inode;
	bool is_cut;
	size_t n;

	if (!text || task->call.number != number ||
	    task_file(task, task->call.args[0], &out->object, &inode) ||
	    proc_text_read(AT_FDCWD, "/proc/locks", text, LOCKS_BYTES)) {
		out->unknown = holder_went_on;
		return;
	}
	is_cut = text_cut(text);
	n = wanted_find(task, text, inode, &wanted);
	if (n != 1) {
		out->unknown = !task_call_is_same(task) ? holder_went_on
			       : n > 1	? "threads wait for several locks of this file"
			       : is_cut ? locks_are_cut
					: "the kernel does not list this lock";
		return;
	}
	for (const char *line = text; *line && !out->unknown;
	     line += strcspn(line, "\n"), line += *line == '\n')
		if (file_lock_parse(line, &held) && file_lock_blocks(&held, &wanted))
			lock_holders_add(task, &held, out);
	/* Others may have it, too, or the thread may wait for another lock of the file. */
	if (is_cut && !out->unknown)
		out->unknown = locks_are_cut;
	if (!out->n && !out->unknown)
		out->unknown = task_call_is_same(task) ? "no process was found that has the lock"
						       : holder_went_on;
}

static bool is_of_same_file(const struct file_lock *x, const struct file_lock *y)
{
	return x->inode == y->inode && x->major == y->major && x->minor == y->minor;
}

/*
 * Sets *out to a lease of the file whose leases a process waits for, as the text of /proc/locks
 * says. Returns the number of different files that it may be.
 */
static size_t lease_find(const char *text, int32_t pid, struct file_lock *out)
{
	struct file_lock last = {};
	size_t n = 0;

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (file_lease_waiter(line) != pid) {
			file_lease_parse(line, &last);
		} else if (last.is_lease && (!n || !is_of_same_file(&last, out))) {
			*out = last;
			n++;
		}
	}
	return n;
}

/* Adds who has a lease of the file: the kernel lists those that wait behind one of them only. */
static void lease_holders_add(const struct task *task, const char *text,
			      const struct file_lock *wanted, struct holder_answer *out)
{
	struct file_lock held;

	for (const char *line = text; *line && !out->unknown;
	     line += strcspn(line, "\n"), line += *line == '\n')
		if (file_lease_parse(line, &held) && !held.is_waiting &&
		    is_of_same_file(&held, wanted))
			lock_holders_add(task, &held, out);
}

/* The thread has not opened the file yet: only its path is known. */
void holder_find_lease(struct task *task, struct holder_answer *out)
{
	_cleanup_(freep) char *text = malloc(LOCKS_BYTES);
	struct file_lock wanted = {};
	bool is_cut;
	size_t n;

	out->object = task_path(task);
	if (!text || proc_text_read(AT_FDCWD, "/proc/locks", text, LOCKS_BYTES)) {
		out->unknown = holder_went_on;
		return;
	}
	is_cut = text_cut(text);
	n = lease_find(text, task->question->pid, &wanted);
	if (n == 1)
		lease_holders_add(task, text, &wanted, out);
	if (is_cut && !out->unknown)
		out->unknown = locks_are_cut;
	/* Where the file may be shared, the kernel tries again at each tick, and lists it in
	 * between. */
	if (!out->n && !out->unknown)
		out->unknown = n > 1 ? "the process waits for several leases" : holder_went_on;
}

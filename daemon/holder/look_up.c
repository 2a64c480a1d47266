/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/holder/internal.h"

static const struct {
	enum wait_reason reason;
	bool in_any_state; /* the thread may be in no system call */
	void (*find)(struct task *task, struct holder_answer *out);
} finders[] = {
	{ REASON_FLOCK, false, holder_find_file_lock },
	{ REASON_FCNTL, false, holder_find_file_lock },
	{ REASON_LEASE, false, holder_find_lease },
	{ REASON_SYSV_SEM, false, holder_find_semaphore },
	{ REASON_MSGRCV, false, holder_find_message },
	{ REASON_MSGSND, false, holder_find_message },
	{ REASON_MUTEX, false, holder_find_mutex },
	{ REASON_PI_MUTEX, false, holder_find_mutex },
	{ REASON_RWLOCK, false, holder_find_rwlock },
	{ REASON_JOIN, false, holder_find_joined },
	{ REASON_PIPE_READ, false, holder_find_pipe },
	{ REASON_PIPE_WRITE, false, holder_find_pipe },
	{ REASON_FIFO_OPEN, false, holder_find_fifo_open },
	{ REASON_EVENTFD, false, holder_find_eventfd },
	{ REASON_MQ, false, holder_find_mq },
	{ REASON_TTY_READ, false, holder_find_terminal },
	{ REASON_TTY_WRITE, false, holder_find_terminal },
	{ REASON_ACCEPT, false, holder_find_socket },
	{ REASON_CONNECT, false, holder_find_socket },
	{ REASON_TCP, false, holder_find_socket },
	{ REASON_UDP, false, holder_find_socket },
	{ REASON_UNIX, false, holder_find_socket },
	{ REASON_UNIX_SEND, false, holder_find_socket },
	{ REASON_SOCKET, false, holder_find_socket },
	{ REASON_SOCKET_SEND, false, holder_find_socket },
	{ REASON_POLL, false, holder_find_polled },
	{ REASON_SELECT, false, holder_find_polled },
	{ REASON_REQUEST, false, holder_find_request },
	{ REASON_FILE_READ, false, holder_find_slow_file },
	{ REASON_WRITEBACK, false, holder_find_slow_file },
	{ REASON_DIRTY_PAGES, false, holder_find_slow_file },
	{ REASON_JOURNAL, false, holder_find_slow_file },
	{ REASON_DISK_FLUSH, false, holder_find_slow_file },
	{ REASON_DISK_QUEUE, false, holder_find_slow_file },
	{ REASON_DISK, false, holder_find_slow_file },
	{ REASON_IO, false, holder_find_slow_file },
	{ REASON_FUSE, false, holder_find_slow_file },
	{ REASON_NFS, false, holder_find_slow_file },
	{ REASON_SMB, false, holder_find_slow_file },
	{ REASON_P9, false, holder_find_slow_file },
	{ REASON_CEPH, false, holder_find_slow_file },
	{ REASON_NETFS, false, holder_find_slow_file },
	{ REASON_INODE_LOCK, false, holder_find_slow_file },
	{ REASON_FILE_POSITION, false, holder_find_slow_file },
	{ REASON_FILESYSTEM_FREEZE, false, holder_find_slow_file },
	{ REASON_SCANNED, false, holder_find_slow_file },
	{ REASON_CHILD, false, holder_find_child },
	{ REASON_VFORK, false, holder_find_vfork_child },
	{ REASON_DEBUGGER, true, holder_find_tracer },
	{ REASON_STOPPED, true, holder_find_stopped },
	{ REASON_FROZEN, true, holder_find_frozen },
};

bool holder_knows(enum wait_reason reason)
{
	for (size_t i = 0; i < ARRAY_SIZE(finders); i++)
		if (finders[i].reason == reason)
			return true;
	return false;
}

static const char kernel_is_silent[] = "the kernel does not say who holds its locks";

const char *holder_never_known(enum wait_reason reason)
{
	switch (reason) {
	case REASON_FUTEX:
		return "its kind is not known, and only mutexes of glibc (pthread) name their "
		       "owner";
	case REASON_PROGRAM_LOCK:
		return "only the program can tell: PostgreSQL by pg_blocking_pids(), MariaDB by "
		       "SHOW PROCESSLIST, Java by jstack; that of Rust, Ruby or SQLite cannot";
	case REASON_GIL:
		return "it is mostly the thread of the process that is on a CPU";
	case REASON_KERNEL_MUTEX ... REASON_MMAP_LOCK:
	case REASON_RTNL:
	case REASON_CGROUP_LOCK:
		return kernel_is_silent;
	default:
		return NULL;
	}
}

/* Forgets what was found, because it is about another wait of the thread. */
static void answer_forget(struct holder_answer *out)
{
	free(out->object);
	*out = (struct holder_answer){ .is_known = true, .unknown = holder_went_on };
}

void holder_look_up(struct holder_search *search, const struct holder_question *question,
		    struct holder_answer *out)
{
	struct task task = { .question = question, .search = search, .dir_fd = -1 };
	int r = task_open(&task);

	*out = (struct holder_answer){ .is_known = true };
	for (size_t i = 0; i < ARRAY_SIZE(finders) && !r; i++) {
		if (finders[i].reason != question->reason)
			continue;
		r = finders[i].in_any_state ? 0 : task_call_read(&task);
		if (r)
			break;
		finders[i].find(&task, out);
		if (wait_reason_is_lock(question->reason))
			holder_find_turn(&task, out);
		if (!out->n && !out->unknown && question->reason == REASON_INODE_LOCK)
			out->unknown = kernel_is_silent;
		if (!finders[i].in_any_state && !task_call_is_same(&task))
			answer_forget(out);
	}
	if (r)
		out->unknown = r == -EPERM || r == -EACCES ? "stackd may not look at the thread"
							   : holder_went_on;
	closep(&task.dir_fd);
}

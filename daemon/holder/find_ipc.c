/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits for semaphores and message queues of System V, which their ids name. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/holder/internal.h"
#include "daemon/host/procfs.h"

/* True if the thread is in the IPC namespace of this process, whose ids the kernel takes. */
static bool is_of_own_namespace(const struct task *task)
{
	char own[64] = "", other[64] = "";

	return readlink("/proc/self/ns/ipc", own, sizeof(own) - 1) > 0 &&
	       readlinkat(task->dir_fd, "ns/ipc", other, sizeof(other) - 1) > 0 &&
	       strcmp(own, other) == 0;
}

/* Returns the number of the only semaphore of the set that is waited for; -1: not known which. */
static int semaphore_number(const struct task *task)
{
	struct sembuf operation;

	return task->call.args[2] == 1 && !task_memory_read(task, task->call.args[1], &operation,
							    sizeof(operation))
		       ? operation.sem_num
		       : -1;
}

/*
 * True if a process may be the one that changed a semaphore of the set last: it has not ended, and
 * began before that.
 */
static bool is_as_old(int32_t pid, const struct semid_ds *set)
{
	const time_t changed = set->sem_otime > set->sem_ctime ? set->sem_otime : set->sem_ctime;
	const int64_t boot_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
	int32_t parent;
	uint64_t ticks;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/stat", pid);
	return !proc_stat_read(AT_FDCWD, path, &parent, &ticks) &&
	       (boot_ns + (int64_t)procfs_ticks_ns(ticks)) / NS_PER_S <= changed + 1;
}

/*
 * Adds the process that changed the semaphore last. A semaphore has no owner, but if it is used as
 * a lock and is taken, this process took it.
 */
static void last_changer_add(int id, int number, struct holder_answer *out)
{
	struct semid_ds set;
	int pid = semctl(id, number, GETPID);

	if (pid < 0 || semctl(id, 0, IPC_STAT, &set) < 0) {
		out->unknown = errno == EACCES || errno == EPERM
				       ? "stackd may not ask the kernel about the semaphore"
				       : holder_went_on;
		return;
	}
	if (pid && is_as_old(pid, &set)) {
		holder_add(out, pid, 0);
		out->unknown = "a semaphore has no owner; this is who changed it last";
		return;
	}
	out->unknown = "the process that changed the semaphore last has ended, or cannot be seen";
}

void holder_find_semaphore(struct task *task, struct holder_answer *out)
{
	const int id = (int)task->call.args[0], number = semaphore_number(task);

	if (task->call.number != SYS_semop && task->call.number != SYS_semtimedop) {
		out->unknown = holder_went_on;
		return;
	}
	if ((number < 0 ? asprintf(&out->object, "semaphore set %d", id)
			: asprintf(&out->object, "semaphore %d of set %d", number, id)) < 0)
		out->object = NULL;
	if (number < 0)
		out->unknown = "the thread waits for several semaphores";
	else if (!is_of_own_namespace(task))
		out->unknown = "stackd runs in another IPC namespace than the thread";
	else
		last_changer_add(id, number, out);
}

void holder_find_message(struct task *task, struct holder_answer *out)
{
	const bool sends = task->question->reason == REASON_MSGSND;

	if (task->call.number != (sends ? SYS_msgsnd : SYS_msgrcv)) {
		out->unknown = holder_went_on;
		return;
	}
	if (asprintf(&out->object, "message queue %d", (int)task->call.args[0]) < 0)
		out->object = NULL;
	out->unknown = sends ? "any program may receive from the queue"
			     : "any program may send to the queue";
}

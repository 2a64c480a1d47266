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
 * Returns the process that changed a semaphore last, 0 if it has ended. Returns a negative errno if
 * the kernel does not say it.
 */
static int last_changer(int id, int number)
{
	struct semid_ds set;
	int pid = semctl(id, number, GETPID);

	if (pid < 0 || semctl(id, 0, IPC_STAT, &set) < 0)
		return -errno;
	return pid && is_as_old(pid, &set) ? pid : 0;
}

/*
 * A semaphore has no owner, and may be no lock at all. So who changed it last, which is who has it
 * if it is used as a lock, is said with the object.
 */
void holder_find_semaphore(struct task *task, struct holder_answer *out)
{
	const int id = (int)task->call.args[0], number = semaphore_number(task);
	char changer[48] = "";
	int pid;

	if (task->call.number != SYS_semop && task->call.number != SYS_semtimedop) {
		out->unknown = holder_went_on;
		return;
	}
	pid = number < 0 || !is_of_own_namespace(task) ? 0 : last_changer(id, number);
	if (pid > 0)
		snprintf(changer, sizeof(changer), ", changed last by pid %d", pid);
	if ((number < 0
		     ? asprintf(&out->object, "semaphore set %d", id)
		     : asprintf(&out->object, "semaphore %d of set %d%s", number, id, changer)) < 0)
		out->object = NULL;
	out->unknown = "a semaphore has no owner";
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

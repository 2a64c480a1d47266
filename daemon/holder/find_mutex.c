/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "common/base.h"
#include "daemon/holder/internal.h"
#include "daemon/host/proc_maps.h"

/* The beginning of glibc's pthread_mutex_t on 64-bit hosts, which is part of its ABI. */
struct glibc_mutex {
	uint32_t lock;
	uint32_t count;
	uint32_t owner;
	uint32_t users;
	uint32_t kind;
};

/*
 * GLIBC_KINDS: the bits that a mutex can have in `kind`: its type, and whether it is robust,
 * inherits priorities, is shared between processes or elides locks.
 */
enum { GLIBC_KINDS = 0x3 | 0x10 | 0x20 | 0x80 | 0x300, GLIBC_ROBUST = 0x10, GLIBC_CONTENDED = 2 };

/* Why nobody is named where the words in memory are not those of a lock of glibc. */
static const char no_glibc[] = "the lock is none of those of glibc that name their owner";

/*
 * Sets *out to the id of the thread that the lock names as its owner, as it wrote it; 0 if it names
 * none. Returns NULL, or why it cannot name one, with *out set to 0: words of other libraries, such
 * as musl's, have other values while threads wait.
 */
static const char *owner_read(const struct task *task, uint64_t address, uint32_t *out)
{
	uint32_t word, expected = (uint32_t)task->call.args[2];
	bool is_pi = task->question->reason == REASON_PI_MUTEX, is_robust;
	struct glibc_mutex mutex;

	*out = 0;
	if (is_pi ? task_memory_read(task, address, &word, sizeof(word))
		  : task_memory_read(task, address, &mutex, sizeof(mutex)))
		return "the lock could not be read";
	if (is_pi) {
		*out = word & FUTEX_TID_MASK;
		return NULL;
	}
	is_robust = mutex.kind & GLIBC_ROBUST;
	if (mutex.kind & ~(uint32_t)GLIBC_KINDS || (!is_robust && expected != GLIBC_CONTENDED))
		return no_glibc;
	/* It was let go a moment ago. */
	if (mutex.lock != expected || !mutex.users)
		return NULL;
	if (is_robust && (mutex.lock & FUTEX_TID_MASK) != mutex.owner)
		return no_glibc;
	*out = mutex.owner;
	return NULL;
}

/* Names the lock by its address. Returns false if the thread does not wait for a futex. */
static bool futex_name(const struct task *task, uint64_t address, struct holder_answer *out)
{
	if (task->call.number != SYS_futex) {
		out->unknown = holder_went_on;
		return false;
	}
	if (asprintf(&out->object, "0x%" PRIx64, address) < 0)
		out->object = NULL;
	return true;
}

/*
 * Adds the thread of the process that a lock names. It is not believed if it is no thread of this
 * process.
 */
static void owner_add(const struct task *task, uint32_t owner, struct holder_answer *out)
{
	int32_t tid = task_thread(task, owner);

	if (!owner)
		out->unknown = "the lock names no owner";
	else if (!tid)
		out->unknown = "the lock names an owner that is no thread of the process";
	else
		holder_add(out, task->question->pid, tid);
}

/* A place in a file, or in memory that processes share, which has a number as a file has. */
struct place {
	dev_t dev;
	uint64_t inode, offset;
};

static FILE *maps_open(int32_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/maps", pid);
	return fopen(path, "re");
}

/* Sets *out to the place at an address, if that is memory that other processes may share. */
static bool place_read(int32_t pid, uint64_t address, struct place *out)
{
	_cleanup_(fclosep) FILE *maps = maps_open(pid);
	_cleanup_(freep) char *line = NULL;
	struct proc_mapping mapping;
	size_t capacity = 0;

	while (maps && getline(&line, &capacity, maps) > 0) {
		if (!proc_maps_shared_parse(line, &mapping) || address < mapping.start ||
		    address >= mapping.end)
			continue;
		*out = (struct place){ mapping.dev, mapping.inode,
				       address - mapping.start + mapping.pgoff };
		return true;
	}
	return false;
}

/* True if a process has the place in its memory. */
static bool place_is_mapped(int32_t pid, const struct place *place)
{
	_cleanup_(fclosep) FILE *maps = maps_open(pid);
	_cleanup_(freep) char *line = NULL;
	struct proc_mapping mapping;
	size_t capacity = 0;

	while (maps && getline(&line, &capacity, maps) > 0)
		if (proc_maps_shared_parse(line, &mapping) && mapping.dev == place->dev &&
		    mapping.inode == place->inode && place->offset >= mapping.pgoff &&
		    place->offset - mapping.pgoff < mapping.end - mapping.start)
			return true;
	return false;
}

/*
 * Adds the thread that a shared lock names, if its process has the lock in its memory, too. The id
 * is that of the thread's own pid namespace, so it is believed only in the initial one.
 */
static void shared_owner_add(const struct task *task, const struct place *place, uint32_t owner,
			     struct holder_answer *out)
{
	char path[64];
	int32_t pid;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", owner);
	pid = owner ? status_number(AT_FDCWD, path, "Tgid:") : 0;
	if (!owner)
		out->unknown = "the lock names no owner";
	else if (task_is_in_own_namespace(task) || !pid ||
		 thread_is_in_own_namespace((int32_t)owner) || !place_is_mapped(pid, place))
		out->unknown = "the lock is shared with other processes, and names no thread that "
			       "is known to have it in its memory";
	else
		holder_add(out, pid, (int32_t)owner);
}

/*
 * Reads the owner of a lock of the program from its memory. Anything may be written there, so it is
 * believed only if it names a thread of the same process, or one that has mapped the same shared
 * memory, the same twice, while the waiter still waits for that lock.
 */
void holder_find_mutex(struct task *task, struct holder_answer *out)
{
	uint64_t address = task->call.args[0];
	uint32_t owner, again;
	struct place place;

	if (!futex_name(task, address, out))
		return;
	out->unknown = owner_read(task, address, &owner);
	if (out->unknown)
		return;
	/* glibc waits for each robust mutex as if it were shared. */
	if (!(task->call.args[1] & FUTEX_PRIVATE_FLAG) &&
	    place_read(task->question->pid, address, &place))
		shared_owner_add(task, &place, owner, out);
	else
		owner_add(task, owner, out);
	if (owner_read(task, address, &again) || again != owner) {
		out->n = 0;
		out->unknown = holder_went_on;
	}
}

/* The beginning of glibc's pthread_rwlock_t on 64-bit hosts, which is part of its ABI. */
struct glibc_rwlock {
	uint32_t readers; /* number of readers << RWLOCK_READERS_SHIFT, and bits */
	uint32_t writers;
	uint32_t write_phase; /* futex */
	uint32_t writers_futex;
	uint32_t pad[2];
	uint32_t writer; /* id of the thread that has the lock for writing */
	uint32_t is_shared;
};

enum { RWLOCK_WRITE_LOCKED = 2, RWLOCK_READERS_SHIFT = 3 };

/*
 * Returns the address of the lock, to which one of two futexes belongs: that for the write phase is
 * at a multiple of 8, and that of the writers is not. glibc waits as long as they have the values 2
 * or 3. Returns 0 for other values: then it is another library's lock, or one that prefers writers.
 */
static uint64_t rwlock_address(const struct call *call)
{
	uint64_t futex = call->args[0];
	uint32_t expected = (uint32_t)call->args[2];

	if ((expected != 2 && expected != 3) || futex % 4)
		return 0;
	return futex - (futex % 8 ? offsetof(struct glibc_rwlock, writers_futex)
				  : offsetof(struct glibc_rwlock, write_phase));
}

void holder_find_rwlock(struct task *task, struct holder_answer *out)
{
	uint64_t address = rwlock_address(&task->call);
	struct glibc_rwlock lock, again;
	struct place place;

	if (!futex_name(task, address ? address : task->call.args[0], out))
		return;
	if (!address)
		out->unknown =
			"readers may have it, whom a lock of glibc does not name; other locks name nobody";
	else if (task_memory_read(task, address, &lock, sizeof(lock)) || lock.pad[0] ||
		 lock.pad[1] || lock.is_shared > 1)
		out->unknown = no_glibc;
	else if (lock.readers & RWLOCK_WRITE_LOCKED && lock.writer && lock.is_shared &&
		 place_read(task->question->pid, address, &place))
		shared_owner_add(task, &place, lock.writer, out);
	else if (lock.readers & RWLOCK_WRITE_LOCKED && lock.writer)
		owner_add(task, lock.writer, out);
	else if (lock.readers >> RWLOCK_READERS_SHIFT)
		out->unknown = "threads that read have it, and the lock does not name them";
	else
		out->unknown = "the lock names no owner";
	if (out->n && (task_memory_read(task, address, &again, sizeof(again)) ||
		       again.writer != lock.writer)) {
		out->n = 0;
		out->unknown = holder_went_on;
	}
}

/* A thread that joins another one waits as long as a word has that thread's id. */
void holder_find_joined(struct task *task, struct holder_answer *out)
{
	uint32_t word, expected = (uint32_t)task->call.args[2];

	if (!futex_name(task, task->call.args[0], out))
		return;
	free(TAKE(out->object));
	if (task_memory_read(task, task->call.args[0], &word, sizeof(word)) || word != expected)
		out->unknown = holder_went_on;
	else
		owner_add(task, word, out);
	if (!out->n && out->unknown != holder_went_on)
		out->unknown = "the thread that is waited for is not known";
}

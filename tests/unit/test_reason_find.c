/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/window/idle_wait.h"
#include "daemon/window/reason_find.h"

enum { SLEEPING = 1, UNINTERRUPTIBLE = 2, FRAMES_MAX = 48 };

/* A stack, its frames, and the text in which their names lie. */
struct made {
	struct stack stack;
	struct frame frames[FRAMES_MAX];
	struct frame *pointers[FRAMES_MAX];
	char text[1024];
};

/* Makes a stack of functions whose names are separated by spaces, the leaf first. */
static struct stack *stack_make(struct made *made, const char *names)
{
	size_t n = 0;

	*made = (struct made){ .stack.is_resolved = true };
	snprintf(made->text, sizeof(made->text), "%s", names);
	for (char *name = strtok(made->text, " "); name; name = strtok(NULL, " ")) {
		assert_true(n < FRAMES_MAX);
		made->frames[n].name = name;
		made->pointers[n] = &made->frames[n];
		n++;
	}
	made->stack.n_frames = n;
	made->stack.frames = made->pointers;
	return &made->stack;
}

static void assert_reason(const char *names, enum wait_reason got, enum wait_reason want)
{
	if (got != want)
		fail_msg("%s: %s, not %s", names, wait_reason_word(got), wait_reason_word(want));
}

static void test_kernel_stacks(void **state)
{
	static const struct {
		const char *names;
		enum wait_reason reason;
	} cases[] = {
		{ "futex_do_wait __futex_wait futex_wait do_futex", REASON_FUTEX },
		{ "__schedule schedule anon_pipe_read vfs_read", REASON_PIPE_READ },
		/* A cgroup of version 2 is frozen. */
		{ "__schedule schedule get_signal arch_do_signal_or_restart", REASON_FROZEN },
		{ "__schedule schedule ptrace_stop get_signal", REASON_DEBUGGER },
		{ "unix_stream_read_generic unix_stream_recvmsg", REASON_UNIX },
		{ "inet_csk_accept inet_accept do_accept", REASON_ACCEPT },
		/* A general function counts only if no other function says more. */
		{ "__skb_wait_for_more_packets __unix_dgram_recvmsg", REASON_UNIX },
		{ "__skb_wait_for_more_packets raw_recvmsg", REASON_SOCKET },
		{ "locks_lock_inode_wait __do_sys_flock", REASON_FLOCK },
		{ "locks_lock_inode_wait fcntl_setlk", REASON_FCNTL },
		{ "io_schedule folio_wait_bit_common filemap_fault do_fault", REASON_PAGE_FAULT },
		{ "__schedule schedule io_schedule blkdev_read_iter", REASON_DISK },
		/* The page cache is the same for FUSE, NFS and a disk. */
		{ "folio_wait_bit_common filemap_get_pages filemap_read vfs_read",
		  REASON_FILE_READ },
		{ "folio_wait_bit folio_wait_writeback fuse_fsync", REASON_WRITEBACK },
		{ "io_schedule folio_wait_bit_common invalidate_inode_pages2_range", REASON_IO },
		{ "submit_bio_wait blkdev_issue_flush ext4_sync_file", REASON_DISK_FLUSH },
		{ "unix_wait_for_peer unix_stream_connect", REASON_CONNECT },
		{ "unix_wait_for_peer unix_dgram_sendmsg", REASON_UNIX_SEND },
		{ "fanotify_handle_event fsnotify do_dentry_open", REASON_SCANNED },
		{ "sk_stream_wait_close tcp_close inet_release", REASON_LINGER },
		/* A function that takes one lock shows which lock its callees wait for. */
		{ "vm_mmap_pgoff do_syscall_64", REASON_MMAP_LOCK },
		{ "schedule rwsem_down_write_slowpath down_write_killable vm_mmap_pgoff",
		  REASON_MMAP_LOCK },
		{ "schedule percpu_rwsem_wait __percpu_down_read vfs_write",
		  REASON_FILESYSTEM_FREEZE },
		{ "percpu_rwsem_wait cgroup_attach_lock", REASON_KERNEL_PERCPU_RWSEM },
		{ "fuse_direct_IO generic_file_write_iter vfs_write", REASON_UNKNOWN },
		{ "__mutex_lock.constprop.0 ext4_fc_commit", REASON_KERNEL_MUTEX },
		{ "do_nanosleep hrtimer_nanosleep", REASON_SLEEP },
		{ "kernel_clone __do_sys_vfork", REASON_VFORK },
		{ "schedule wait_for_completion_killable kernel_clone", REASON_VFORK },
		/* These functions, above the wait, only show how the thread was started. */
		{ "mystery kernel_clone __do_sys_clone", REASON_UNKNOWN },
		{ "mystery process_one_work worker_thread kthread", REASON_UNKNOWN },
		{ "schedule worker_thread kthread", REASON_WORK },
		{ "mystery do_syscall_64", REASON_UNKNOWN },
		{ "schedule", REASON_UNKNOWN },
		{ "", REASON_UNKNOWN },
	};
	struct made kernel, user;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct stack *stack = stack_make(&kernel, cases[i].names);

		assert_reason(cases[i].names,
			      reason_find(SLEEPING, stack, stack_make(&user, "read main")),
			      cases[i].reason);
		/* The second time, the stack has it already. */
		assert_reason(cases[i].names, reason_find(SLEEPING, stack, NULL), cases[i].reason);
	}
	assert_reason("no stack", reason_find(SLEEPING, NULL, NULL), REASON_UNKNOWN);
}

/* User frames show what a program uses a futex for. */
static void test_futexes(void **state)
{
	static const struct {
		const char *names;
		enum wait_reason reason;
	} cases[] = {
		{ "__lll_lock_wait pthread_mutex_lock checkout", REASON_MUTEX },
		{ "__futex_abstimed_wait_common __pthread_mutex_clocklock_common checkout",
		  REASON_MUTEX },
		{ "__pthread_mutex_lock_full checkout", REASON_MUTEX },
		{ "__futex_abstimed_wait_common pthread_rwlock_timedwrlock checkout",
		  REASON_RWLOCK },
		{ "x pthread_cond_wait uv_cond_wait", REASON_COND },
		{ "__new_sem_wait_slow64.constprop.0 sem_wait", REASON_SEM },
		{ "syscall parking_lot", REASON_FUTEX },
		{ "a b c d e pthread_cond_wait", REASON_FUTEX },
	};
	struct made kernel, user;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_reason(cases[i].names,
			      reason_find(SLEEPING, stack_make(&kernel, "futex_do_wait"),
					  stack_make(&user, cases[i].names)),
			      cases[i].reason);
	/* A program may have functions with these names, and wait for something else. */
	assert_reason("pipe",
		      reason_find(SLEEPING, stack_make(&kernel, "anon_pipe_read"),
				  stack_make(&user, "pthread_mutex_lock")),
		      REASON_PIPE_READ);
}

/*
 * A lock that a program makes itself is found by the program's functions, whatever the thread
 * sleeps in, and a thread that waits for one is not idle.
 */
static void test_programs(void **state)
{
	static const struct {
		const char *kernel;
		const char *user;
		enum wait_reason reason;
	} cases[] = {
		{ "do_epoll_wait", "epoll_wait WaitEventSetWait WaitLatch ProcSleep f LockTuple",
		  REASON_PROGRAM_LOCK },
		{ "do_epoll_wait", "epoll_wait WaitEventSetWait WaitLatch SyncRepWaitForLSN f",
		  REASON_REPLICATION },
		{ "do_epoll_wait", "epoll_wait WaitEventSetWait WaitLatch WalWriterMain main",
		  REASON_EPOLL },
		{ "futex_do_wait",
		  "a __new_sem_wait_slow64.constprop.0 sem_wait PGSemaphoreLock LWLockAcquire",
		  REASON_PROGRAM_LOCK },
		{ "futex_do_wait",
		  "a pthread_cond_wait os::PlatformEvent::park() ObjectMonitor::EnterI(Java*)",
		  REASON_PROGRAM_LOCK },
		{ "futex_do_wait",
		  "a pthread_cond_wait os::PlatformEvent::park() ObjectMonitor::wait(long)",
		  REASON_COND },
		{ "futex_do_wait", "syscall <std::sys::sync::mutex::futex::Mutex>::lock_contended",
		  REASON_PROGRAM_LOCK },
		{ "futex_do_wait", "syscall absl::lts_20220623::Mutex::LockSlow(int)",
		  REASON_PROGRAM_LOCK },
		{ "futex_do_wait", "syscall Queue::unlock_contended(lock_slow::T)", REASON_FUTEX },
		{ "futex_do_wait",
		  "pthread_cond_timedwait python3.11+fn_1 _PyEval_EvalFrameDefault", REASON_GIL },
		{ "futex_do_wait", "pthread_cond_timedwait python3.11+fn_1 PyEval_RestoreThread",
		  REASON_GIL },
		{ "futex_do_wait", "sem_clockwait python3.11+fn_1 _PyEval_EvalFrameDefault",
		  REASON_SEM },
		{ "futex_do_wait", "pthread_cond_timedwait python3.11+fn_1 PyObject_Vectorcall",
		  REASON_COND },
		{ "futex_do_wait",
		  "a pthread_cond_wait rb_native_cond_wait r+fn_1 r+fn_2 r+fn_3 rb_mutex_synchronize",
		  REASON_PROGRAM_LOCK },
		{ "hrtimer_nanosleep", "clock_nanosleep usleep unixSleep sqliteDefaultBusyCallback",
		  REASON_PROGRAM_LOCK },
		{ "hrtimer_nanosleep", "clock_nanosleep usleep main", REASON_SLEEP },
		{ "do_sys_poll", "poll pqSocketPoll libpq.so+fn_1 libpq.so+fn_2 PQgetResult PQexec",
		  REASON_REQUEST },
		{ "do_sys_poll", "poll sock_call_impl sock_recv cfunction_call", REASON_REQUEST },
		{ "do_sys_poll", "poll fn_1 fn_2 rb_thread_io_blocking_region fn_3",
		  REASON_REQUEST },
		{ "do_sys_poll", "poll sock_call_impl sock_accept cfunction_call", REASON_POLL },
		/* A function of this name that waits for something else. */
		{ "anon_pipe_read", "read lock_wait main", REASON_PIPE_READ },
	};
	struct made kernel, user;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct stack *below = stack_make(&user, cases[i].user);
		struct stack *above = stack_make(&kernel, cases[i].kernel);

		above->is_idle = true;
		/* As namer.c does. */
		if (reason_is_of_program(below))
			below->flags |= STACK_IS_OF_PROGRAM;
		assert_reason(cases[i].user, reason_find(SLEEPING, above, below), cases[i].reason);
		/* Those of libc's and of the kernel's functions stay idle. */
		assert_int_equal(wait_is_idle(SLEEPING, false, above, below),
				 cases[i].reason == REASON_COND || cases[i].reason == REASON_SEM ||
					 cases[i].reason == REASON_FUTEX ||
					 cases[i].reason == REASON_SLEEP ||
					 cases[i].reason == REASON_POLL ||
					 cases[i].reason == REASON_EPOLL);
	}
}

/* A thread that wants a CPU, or was stopped, waits for that, whatever it did before. */
static void test_states(void **state)
{
	struct made kernel;
	struct stack *stack = stack_make(&kernel, "anon_pipe_read");

	assert_reason("R", reason_find(STATE_PREEMPTED, stack, NULL), REASON_CPU);
	assert_reason("new", reason_find(STATE_NEW, NULL, NULL), REASON_CPU);
	assert_reason("quota", reason_find(STATE_PREEMPTED | STATE_THROTTLED, stack, NULL),
		      REASON_THROTTLED);
	assert_reason("S", reason_find(SLEEPING | STATE_THROTTLED, stack, NULL), REASON_PIPE_READ);
	/* A pipe is waited for in state S, and its lock in state D. */
	assert_reason("D", reason_find(UNINTERRUPTIBLE, stack, NULL), REASON_KERNEL_LOCK);
	assert_reason("frozen", reason_find(STATE_FROZEN, stack, NULL), REASON_FROZEN);
	/* Nor is it idle, although it waited for work before. */
	stack->is_idle = true;
	assert_true(wait_is_idle(SLEEPING, false, stack, NULL));
	assert_false(wait_is_idle(TASK_STOPPED, false, stack, NULL));
	assert_false(wait_is_idle(TASK_TRACED, false, stack, NULL));
	stack = stack_make(&kernel, "schedule mystery anon_pipe_write vfs_write");
	assert_reason("below", reason_find(UNINTERRUPTIBLE, stack, NULL), REASON_UNKNOWN);
	stack = stack_make(&kernel, "filemap_get_pages filemap_read");
	assert_reason("file", reason_find(UNINTERRUPTIBLE, stack, NULL), REASON_FILE_READ);
	stack = stack_make(&kernel, "schedule get_signal");
	assert_reason("T", reason_find(4, stack, NULL), REASON_STOPPED);
	assert_reason("t", reason_find(8, stack, NULL), REASON_DEBUGGER);
}

/* The reason is kept only once all frames that count are known. */
static void test_stacks_that_are_not_whole(void **state)
{
	struct made made;
	struct stack *stack = stack_make(&made, "mystery anon_pipe_read");

	stack->is_resolved = false;
	assert_reason("new", reason_find(SLEEPING, stack, NULL), REASON_UNKNOWN);
	stack->is_resolved = true;
	assert_reason("named", reason_find(SLEEPING, stack, NULL), REASON_PIPE_READ);

	stack = stack_make(&made, "mystery anon_pipe_read");
	stack->is_resolved = false;
	stack->is_partial = true;
	stack->n_raw = 1;
	assert_reason("one frame", reason_find(SLEEPING, stack, NULL), REASON_UNKNOWN);
	stack->n_raw = 2;
	assert_reason("two frames", reason_find(SLEEPING, stack, NULL), REASON_PIPE_READ);
	stack->flags = STACK_IS_AMBIGUOUS;
	assert_reason("ambiguous", reason_find(SLEEPING, stack, NULL), REASON_UNKNOWN);
}

/* Each reason has a word of its own, which is found again, and a text of its own. */
static void test_words(void **state)
{
	for (unsigned int i = 0; i < WAIT_REASON_N; i++) {
		assert_int_equal(wait_reason_find(wait_reason_word(i)), i);
		for (unsigned int k = 0; k < i; k++)
			if (wait_reason_text(i))
				assert_string_not_equal(wait_reason_text(i), wait_reason_text(k));
	}
	assert_int_equal(wait_reason_find("Flock"), WAIT_REASON_N);
	assert_int_equal(wait_reason_find(NULL), WAIT_REASON_N);
	assert_null(wait_reason_text(REASON_UNKNOWN));
}

static void test_locks(void **state)
{
	static const char *const words[] = { "mutex",	 "rwlock",	 "pi-mutex",
					     "flock",	 "fcntl",	 "file-lock",
					     "sysv-sem", "program-lock", "gil" };
	size_t n = 0;

	for (unsigned int i = 0; i < WAIT_REASON_N; i++)
		n += wait_reason_is_lock(i);
	assert_int_equal(n, ARRAY_SIZE(words));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		assert_true(wait_reason_is_lock(wait_reason_find(words[i])));
	assert_false(wait_reason_is_lock(WAIT_REASON_N));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel_stacks),
		cmocka_unit_test(test_futexes),
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_stacks_that_are_not_whole),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_locks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

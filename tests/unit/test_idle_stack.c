/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/window/idle_stack.h"

enum { FRAMES = 24, LIBC = 1, LIBUV, PROGRAM };

static char poll_name[] = "poll", cond_name[] = "pthread_cond_wait", ep_name[] = "ep_poll";
static char *const functions[] = { poll_name, cond_name, ep_name, NULL };

struct fixture {
	struct stack stack;
	struct frame frames[FRAMES];
	struct frame *pointers[FRAMES];
};

static void add(struct fixture *f, uint64_t file, const char *name)
{
	size_t n = f->stack.n_frames++;

	f->frames[n] = (struct frame){ .file_id = file, .name = (char *)(uintptr_t)name };
	f->pointers[n] = &f->frames[n];
	f->stack.frames = f->pointers;
}

/* Adds a program's functions above the wait, and those of libc that start a thread. */
static bool is_idle(struct fixture *f, size_t above)
{
	for (size_t i = 2; i < above; i++)
		add(f, PROGRAM, "work");
	add(f, LIBC, "start_thread");
	add(f, LIBC, "clone3");
	f->stack.process = (struct process *)f; /* never followed */
	return idle_stack(functions, &f->stack);
}

static void test_innermost(void **state)
{
	struct fixture leaf = {}, deeper = {}, kernel = {};

	add(&leaf, LIBC, "poll");
	assert_true(is_idle(&leaf, 9));
	add(&deeper, LIBC, "recvmsg");
	add(&deeper, PROGRAM, "poll");
	assert_false(is_idle(&deeper, 3));
	add(&kernel, 0, "schedule");
	add(&kernel, 0, "ep_poll.constprop.0");
	assert_true(idle_stack(functions, &kernel.stack));
}

/* A thread of a pool waits for a condition in its main loop. */
static void test_main_loop(void **state)
{
	struct fixture pool = {}, newer = {}, nameless = {}, deep = {}, cut = {};

	add(&pool, LIBC, "__futex_abstimed_wait_common");
	add(&pool, LIBC, "pthread_cond_wait");
	add(&pool, LIBUV, "uv_cond_wait");
	assert_true(is_idle(&pool, 3));
	/* glibc 2.41 */
	add(&newer, LIBC, "__syscall_cancel_arch");
	add(&newer, LIBC, "__internal_syscall_cancel");
	add(&newer, LIBC, "__futex_abstimed_wait_common");
	add(&newer, LIBC, "pthread_cond_wait");
	assert_true(is_idle(&newer, IDLE_LOOP_MAX));
	/* Only the names that libc exports are known. */
	add(&nameless, LIBC, "libc.so.6+fn_85f40");
	add(&nameless, LIBC, "pthread_cond_wait");
	assert_true(is_idle(&nameless, 4));
	/* Deeper in the stack, it may be a lock that is made of a condition. */
	add(&deep, LIBC, "__futex_abstimed_wait_common");
	add(&deep, LIBC, "pthread_cond_wait");
	assert_false(is_idle(&deep, IDLE_LOOP_MAX + 1));
	/* How deep a stack is that was cut short is not known. */
	add(&cut, LIBC, "__futex_abstimed_wait_common");
	add(&cut, LIBC, "pthread_cond_wait");
	cut.stack.flags = STACK_IS_NO_TABLE;
	assert_false(is_idle(&cut, 3));
}

/* After the condition came, the thread waits for the mutex: another thread holds a lock. */
static void test_mutex_of_condition(void **state)
{
	struct fixture named = {}, nameless = {}, other = {};

	add(&named, LIBC, "__lll_lock_wait");
	add(&named, LIBC, "pthread_mutex_cond_lock");
	add(&named, LIBC, "pthread_cond_wait");
	assert_false(is_idle(&named, 3));
	add(&nameless, LIBC, "libc.so.6+fn_85f40");
	add(&nameless, LIBC, "libc.so.6+fn_86000");
	add(&nameless, LIBC, "pthread_cond_wait");
	assert_false(is_idle(&nameless, 3));
	/* A function of another file with such a name is not libc's. */
	add(&other, LIBC, "__futex_abstimed_wait_common");
	add(&other, PROGRAM, "pthread_cond_wait");
	assert_false(is_idle(&other, 3));
}

/* Adds functions of a file, the innermost first, below those that is_idle() adds. */
static bool is_idle_in(const char *module, const char *const names[], size_t n, size_t above)
{
	struct fixture f = {};

	for (size_t i = 0; i < n; i++) {
		add(&f, PROGRAM, names[i]);
		f.frames[i].module = (char *)(uintptr_t)module;
	}
	return is_idle(&f, above);
}

/* Threads that a runtime keeps for itself are idle, unless they work on something. */
static void test_runtimes(void **state)
{
	static const char *const stopm[] = { "runtime.futex.abi0", "runtime.futexsleep",
					     "runtime.notesleep",  "runtime.mPark",
					     "runtime.stopm",	   "runtime.findRunnable" };
	static const char *const stopped[] = { "runtime.futex",	    "runtime.futexsleep",
					       "runtime.notesleep", "runtime.stopm",
					       "runtime.gcstopm",   "runtime.schedule" };
	static const char *const locked[] = { "runtime.futex", "runtime.futexsleep",
					      "runtime.notesleep", "runtime.stoplockedm" };
	static const char *const mutex[] = { "__lll_lock_wait", "pthread_mutex_lock",
					     "GangWorker::loop()" };
	static const char *const worker[] = { "futex_wait", "sem_wait", "PosixSemaphore::wait()",
					      "GangWorker::loop()" };
	static const char *const task[] = { "futex_wait",	 "pthread_cond_wait",
					    "wait(long)",	 "Monitor::wait(long)",
					    "Barrier::enter()",	 "Task::work(int)",
					    "GangWorker::loop()" };
	static const char *const tokio[] = {
		"syscall", "<std::sys::sync::condvar::futex::Condvar>::wait",
		"<tokio::runtime::scheduler::multi_thread::park::Inner>::park"
	};
	static const char *const node[] = {
		"futex_wait", "sem_wait",
		"node::inspector::(anonymous namespace)::StartIoThreadMain(void*)"
	};
	static const char *const erlang[] = { "futex_wait", "ethr_event_wait", "fn_1",
					      "erts_schedule", "process_main" };
	static const char *const async[] = { "futex_wait", "ethr_event_wait", "async_main" };

	assert_true(is_idle_in("/usr/bin/x", stopm, ARRAY_SIZE(stopm), 12));
	assert_false(is_idle_in("/usr/bin/x", stopped, ARRAY_SIZE(stopped), 12));
	assert_false(is_idle_in("/usr/bin/x", locked, ARRAY_SIZE(locked), 12));
	assert_true(is_idle_in("/usr/lib/jvm/libjvm.so", worker, ARRAY_SIZE(worker), 3));
	assert_false(is_idle_in("/usr/lib/jvm/libjvm.so", task, ARRAY_SIZE(task), 3));
	assert_false(is_idle_in("/usr/lib/jvm/libjvm.so", mutex, ARRAY_SIZE(mutex), 3));
	assert_true(is_idle_in("/usr/lib/erlang/bin/beam.smp", erlang, ARRAY_SIZE(erlang), 3));
	assert_true(is_idle_in("/usr/lib/erlang/bin/beam.smp", async, ARRAY_SIZE(async), 3));
	/* Other programs have such functions, too. */
	assert_false(is_idle_in("/usr/bin/x", async, ARRAY_SIZE(async), 3));
	assert_false(is_idle_in("/usr/bin/x", worker, ARRAY_SIZE(worker), 3));
	assert_true(is_idle_in("/usr/bin/x", tokio, ARRAY_SIZE(tokio), 12));
	assert_true(is_idle_in("/usr/bin/x", node, ARRAY_SIZE(node), 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_innermost),
		cmocka_unit_test(test_main_loop),
		cmocka_unit_test(test_mutex_of_condition),
		cmocka_unit_test(test_runtimes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

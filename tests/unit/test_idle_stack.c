/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/window/idle_stack.h"

enum { FRAMES = 16, LIBC = 1, LIBUV, PROGRAM };

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_innermost),
		cmocka_unit_test(test_main_loop),
		cmocka_unit_test(test_mutex_of_condition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks up the class of each reason: examples of each class, and that no class is without reasons.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "common/wait_class.h"

static const char *class_of(const char *reason)
{
	enum wait_reason found = wait_reason_find(reason);

	assert_int_not_equal(found, WAIT_REASON_N);
	return wait_class_word(wait_class_of(found));
}

static void test_examples(void **state)
{
	static const char *const examples[][2] = {
		{ "mutex", "lock" },
		{ "cond", "lock" },
		{ "flock", "lock" },
		{ "file-lock", "lock" },
		{ "kernel-rwsem", "lock" },
		{ "rcu", "lock" },
		{ "socket-lock", "lock" },
		{ "file-read", "io" },
		{ "page-fault", "io" },
		{ "journal", "io" },
		{ "aio", "io" },
		{ "tcp", "network" },
		{ "accept", "network" },
		{ "vsock", "network" },
		{ "nfs", "network" },
		{ "9p", "network" },
		{ "pipe-read", "ipc" },
		{ "unix", "ipc" },
		{ "netlink", "ipc" },
		{ "fuse", "ipc" },
		{ "epoll", "events" },
		{ "io_uring", "events" },
		{ "inotify", "events" },
		{ "sleep", "sleep" },
		{ "timerfd", "sleep" },
		{ "kernel-timer", "sleep" },
		{ "swap-in", "memory" },
		{ "reclaim", "memory" },
		{ "memory-high", "memory" },
		{ "child", "other" },
		{ "pause", "other" },
		{ "stopped", "other" },
		{ "unknown", "other" },
		{ "gpu", "other" },
		{ "throttled", "other" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(examples); i++)
		assert_string_equal(class_of(examples[i][0]), examples[i][1]);
}

static void test_each_class_has_reasons(void **state)
{
	size_t reasons[WAIT_CLASS_N] = {};

	for (unsigned int i = 0; i < WAIT_REASON_N; i++)
		reasons[wait_class_of((enum wait_reason)i)]++;
	for (unsigned int i = 0; i < WAIT_CLASS_N; i++)
		assert_int_equal(!reasons[i], i == WAIT_CLASS_IDLE || i == WAIT_CLASS_SHORT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_each_class_has_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

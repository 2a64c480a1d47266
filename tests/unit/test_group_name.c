/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/query/group_name.h"

static struct frame schedule = { .kind = FRAME_KERNEL, .name = (char *)"__schedule" };
static struct frame timeout = { .kind = FRAME_KERNEL, .name = (char *)"schedule_timeout" };
static struct frame worker = { .kind = FRAME_KERNEL, .name = (char *)"worker_thread" };
static struct frame driver = { .kind = FRAME_KERNEL,
			       .name = (char *)"poll_ring",
			       .module = (char *)"nvme" };
static struct frame reading = { .kind = FRAME_NATIVE,
				.name = (char *)"read",
				.module = (char *)"/lib/libc.so.6" };
static struct frame nameless = { .kind = FRAME_NATIVE, .module = (char *)"/bin/x" };
static struct frame unread = { .kind = FRAME_PSEUDO, .name = (char *)"[not read]" };

static struct frame *waiting_frames[] = { &schedule, &timeout, &worker };
static struct frame *driver_frames[] = { &driver };
static struct frame *reading_frames[] = { &reading, &nameless };
static struct frame *nameless_frames[] = { &nameless };
static struct frame *unread_frames[] = { &unread };

#define STACK(array)                                                         \
	{                                                                    \
		.is_resolved = true, .n_frames = ARRAY_SIZE(array##_frames), \
		.frames = array##_frames                                     \
	}

static struct stack waiting = STACK(waiting), driving = STACK(driver), in_read = STACK(reading),
		    in_nameless = STACK(nameless), in_unread = STACK(unread);

static void test_words(void **state)
{
	assert_int_equal(group_by_parse("comm"), GROUP_BY_COMM);
	assert_int_equal(group_by_parse("function"), GROUP_BY_FUNCTION);
	assert_int_equal(group_by_parse("stack"), GROUP_BY_NONE);
	assert_int_equal(group_by_parse(NULL), GROUP_BY_NONE);
}

static void assert_name(enum group_by by, const struct stack *kernel, const struct stack *user,
			bool is_sample, const char *want)
{
	assert_string_equal(group_name(by, kernel, user, is_sample), want);
}

static void test_waits(void **state)
{
	assert_name(GROUP_BY_FUNCTION, &waiting, NULL, false, "worker_thread");
	assert_name(GROUP_BY_MODULE, &waiting, NULL, false, "[kernel]");
	assert_name(GROUP_BY_FUNCTION, &waiting, &in_read, false, "read");
	assert_name(GROUP_BY_MODULE, &waiting, &in_read, false, "/lib/libc.so.6");
	assert_name(GROUP_BY_FUNCTION, &waiting, &in_nameless, false, "/bin/x");
	/* Text in place of a user stack says less than the function in the kernel. */
	assert_name(GROUP_BY_FUNCTION, &waiting, &in_unread, false, "worker_thread");
	assert_name(GROUP_BY_MODULE, NULL, &in_unread, false, "[not read]");
	assert_name(GROUP_BY_MODULE, NULL, NULL, false, "[no stack]");
}

/* A sample that was taken in the kernel is grouped by the function in the kernel. */
static void test_samples(void **state)
{
	assert_name(GROUP_BY_FUNCTION, &driving, &in_read, true, "poll_ring");
	assert_name(GROUP_BY_MODULE, &driving, &in_read, true, "nvme");
	assert_name(GROUP_BY_FUNCTION, &waiting, &in_read, true, "__schedule");
	assert_name(GROUP_BY_FUNCTION, NULL, &in_read, true, "read");
}

static void test_stacks_that_are_not_whole(void **state)
{
	struct stack part = {
		.is_partial = true, .n_frames = 3, .n_raw = 2, .frames = waiting_frames
	};
	struct stack none = { .is_partial = true, .n_frames = 3 };
	struct stack twice = in_read;

	/* Only the frames that were loaded are looked at. */
	assert_name(GROUP_BY_FUNCTION, &part, NULL, false, "schedule_timeout");
	assert_name(GROUP_BY_FUNCTION, &none, NULL, false, "[no stack]");
	twice.flags = STACK_IS_AMBIGUOUS;
	assert_name(GROUP_BY_MODULE, NULL, &twice, true, "[two stacks with one id]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_stacks_that_are_not_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base.h"
#include "common/pool_name.h"
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

static struct frame start = { .kind = FRAME_NATIVE,
			      .name = (char *)"start_thread",
			      .module = (char *)"/lib/libc.so.6" };
static struct frame park = { .kind = FRAME_NATIVE,
			     .name = (char *)"runtime.gopark",
			     .module = (char *)"/bin/go" };
static struct frame serve = { .kind = FRAME_NATIVE,
			      .name = (char *)"main.serve",
			      .module = (char *)"/bin/go" };

static struct frame *libc_frames[] = { &reading, &start };
static struct frame *go_frames[] = { &park, &park, &serve, &park };
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
		    in_nameless = STACK(nameless), in_unread = STACK(unread), in_libc = STACK(libc),
		    in_go = STACK(go);

static void check_pool(const char *comm, const char *pool)
{
	char name[16];

	pool_name(comm, name, sizeof(name));
	assert_string_equal(name, pool);
}

/* Threads of a pool have one name: runs of digits are one star. */
static void test_pools(void **state)
{
	check_pool("worker-1", "worker-*");
	check_pool("worker-1234", "worker-*");
	check_pool("kworker/0:1", "kworker/*:*");
	check_pool("12", "*");
	check_pool("1*2", "**");
	check_pool("main", "main");
	check_pool("", "");
	check_pool("a123456789012345", "a*");
	check_pool("abcdefghijklmnop", "abcdefghijklmno");
}

static void test_words(void **state)
{
	assert_int_equal(group_by_parse("comm"), GROUP_BY_COMM);
	assert_int_equal(group_by_parse("function"), GROUP_BY_FUNCTION);
	assert_int_equal(group_by_parse("reason"), GROUP_BY_REASON);
	assert_int_equal(group_by_parse("unit"), GROUP_BY_UNIT);
	assert_int_equal(group_by_parse("container"), GROUP_BY_CONTAINER);
	assert_int_equal(group_by_parse("user"), GROUP_BY_USER);
	assert_int_equal(group_by_parse("line"), GROUP_BY_LINE);
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
	/* The function of the program that called libc. */
	assert_name(GROUP_BY_FUNCTION, &waiting, &in_read, false, "/bin/x");
	assert_name(GROUP_BY_MODULE, &waiting, &in_read, false, "/bin/x");
	assert_name(GROUP_BY_FUNCTION, &waiting, &in_libc, false, "read");
	assert_name(GROUP_BY_FUNCTION, &waiting, &in_go, false, "main.serve");
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

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void assert_of_cgroup(enum group_by by, const char *cgroup, const char *want)
{
	char name[GROUP_CGROUP_NAME_MAX];

	group_cgroup_name(by, cgroup, name);
	assert_string_equal(name, want);
}

static void test_units(void **state)
{
	assert_of_cgroup(GROUP_BY_UNIT, "/system.slice/ssh.service", "ssh.service");
	assert_of_cgroup(GROUP_BY_UNIT,
			 "/user.slice/user-7.slice/user@7.service/app.slice/a.scope/inner",
			 "a.scope");
	assert_of_cgroup(GROUP_BY_UNIT, "/", "[no unit]");
	assert_of_cgroup(GROUP_BY_UNIT, "/.service", "[no unit]");
	assert_of_cgroup(GROUP_BY_UNIT, "", "[no unit]");
	assert_of_cgroup(GROUP_BY_UNIT, NULL, "[unknown]");
	assert_of_cgroup(GROUP_BY_CGROUP, "/a/b", "/a/b");
}

static void test_containers(void **state)
{
	static const char *const ids[] = {
		"/docker/" ID,
		"/docker/" ID "/init.scope",
		"/system.slice/docker-" ID ".scope",
		"/machine.slice/libpod-" ID ".scope/container",
		"/user.slice/user-7.slice/user@7.service/user.slice/libpod-" ID ".scope",
		"/kubepods/burstable/pod12-34/" ID,
		"/kubepods.slice/kubepods-pod12.slice/cri-containerd-" ID ".scope",
		"/kubepods.slice/kubepods-pod12.slice/crio-" ID ".scope",
		"/system.slice/containerd.service/kubepods-pod12.slice:cri-containerd:" ID,
		"/system.slice/nerdctl-" ID ".scope",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ids); i++)
		assert_of_cgroup(GROUP_BY_CONTAINER, ids[i], "0123456789ab");
	assert_of_cgroup(GROUP_BY_CONTAINER, "/lxc/web/system.slice/a.service", "web");
	assert_of_cgroup(GROUP_BY_CONTAINER, "/lxc.payload.web", "web");
	assert_of_cgroup(GROUP_BY_CONTAINER, "/machine.slice/systemd-nspawn@db.service/payload",
			 "db");
	assert_of_cgroup(GROUP_BY_CONTAINER, "/machine.slice/machine-db.scope", "db");
	assert_of_cgroup(GROUP_BY_CONTAINER, "/lxc/web/docker/" ID, "0123456789ab");
	/* The monitors of containers, and what only looks like an id. */
	assert_of_cgroup(GROUP_BY_CONTAINER, "/machine.slice/libpod-conmon-" ID ".scope",
			 "[no container]");
	assert_of_cgroup(GROUP_BY_CONTAINER, "/lxc.monitor.web", "[no container]");
	assert_of_cgroup(GROUP_BY_CONTAINER, "/docker/" ID "0", "[no container]");
	assert_of_cgroup(GROUP_BY_CONTAINER, "/docker/0123", "[no container]");
	assert_of_cgroup(GROUP_BY_CONTAINER, "/lxc", "[no container]");
}

static void test_users(void **state)
{
	assert_of_cgroup(GROUP_BY_USER, "/user.slice/user-1000.slice/session-2.scope", "user 1000");
	assert_of_cgroup(GROUP_BY_USER, "/system.slice/ssh.service", "[no login session]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_pools),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_stacks_that_are_not_whole),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

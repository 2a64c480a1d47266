/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/helper.h"
#include "daemon/broker/message.h"
#include "daemon/broker/perf_event.h"
#include "daemon/host/capabilities.h"

static const struct broker_sampling sampling = { .clock = BROKER_CPU_CLOCK, .frequency_hz = 99 };

static struct perf_request good_sampling(void)
{
	return (struct perf_request){ .kind = PERF_SAMPLING, .frequency_hz = 99 };
}

static struct perf_request good_kprobe(void)
{
	return (struct perf_request){ .kind = PERF_KPROBE,
				      .function = "finish_task_switch.isra.0" };
}

static void test_checks_fields(void **state)
{
	struct perf_request q = good_sampling();

	assert_int_equal(perf_request_check(&q), 0);
	q.frequency_hz = BROKER_MAX_FREQUENCY_HZ;
	assert_int_equal(perf_request_check(&q), 0);
	q.frequency_hz++;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_sampling();
	q.frequency_hz = 0;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q.period = BROKER_MIN_PERIOD;
	assert_int_equal(perf_request_check(&q), 0);
	q.frequency_hz = 99;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q.frequency_hz = 0;
	q.period = BROKER_MIN_PERIOD - 1;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q.period = BROKER_MAX_PERIOD;
	assert_int_equal(perf_request_check(&q), 0);
	q.period++;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_sampling();
	q.clock = BROKER_CLOCK_N;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_sampling();
	q.cpu = 1 << 30;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_sampling();
	q.offset = 1;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_sampling();
	q.is_return = 1;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_sampling();
	q.function[7] = 'x';
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_sampling();
	q.kind = PERF_UPROBE + 1;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_sampling();
	q.counter = 1;
	assert_int_equal(perf_request_check(&q), -EINVAL);
}

/* A uprobe has a path, an offset and a counter; every other field must be unset. */
static void test_checks_paths(void **state)
{
	const struct perf_request good = { .kind = PERF_UPROBE,
					   .path = "/usr/lib/libc.so.6",
					   .offset = 0x1234 };
	struct perf_request q = good;

	assert_int_equal(perf_request_check(&q), 0);
	q.path[0] = 'u';
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good;
	q.path[sizeof(q.path) - 1] = 'x';
	assert_int_equal(perf_request_check(&q), -EINVAL);
	memset(q.path, '/', sizeof(q.path));
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good;
	q.counter = 0x4000;
	assert_int_equal(perf_request_check(&q), 0);
	q.offset = UINT64_MAX;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good;
	q.is_return = 1;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good;
	q.function[0] = 'f';
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_kprobe();
	q.path[0] = '/';
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_sampling();
	q.path[5] = 'x';
	assert_int_equal(perf_request_check(&q), -EINVAL);
}

static void test_checks_symbols(void **state)
{
	struct perf_request q = good_kprobe();

	assert_int_equal(perf_request_check(&q), 0);
	q.is_return = 1;
	assert_int_equal(perf_request_check(&q), 0);
	q.offset = 4;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_kprobe();
	q.function[sizeof(q.function) - 1] = 'x';
	assert_int_equal(perf_request_check(&q), -EINVAL);
	memset(q.function, 'x', sizeof(q.function));
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_kprobe();
	q.function[3] = '/';
	assert_int_equal(perf_request_check(&q), -EINVAL);
	memset(q.function, 0, sizeof(q.function));
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_kprobe();
	q.is_return = 2;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_kprobe();
	q.offset = (1 << 20) - 1;
	assert_int_equal(perf_request_check(&q), 0);
	q.offset++;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_kprobe();
	q.counter = 1;
	assert_int_equal(perf_request_check(&q), -EINVAL);
	q = good_kprobe();
	q.frequency_hz = 1;
	assert_int_equal(perf_request_check(&q), -EINVAL);
}

/* Runs body in a child, because it changes the privileges of its process. Returns its exit code. */
static int run_child(int (*body)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* True if this test has the privileges that broker_start() divides. */
static bool has_admin(void)
{
	const uint64_t needed = CAPABILITY_BIT(CAP_SYS_ADMIN) | CAPABILITY_BIT(CAP_BPF) |
				CAPABILITY_BIT(CAP_PERFMON);

	return (capabilities_permitted() & needed) == needed;
}

enum { GOOD, NO_START, NOT_DROPPED, NOT_BACK, NO_EVENT, NOT_CLOEXEC, NOT_REFUSED };

static int body_admin_is_gone(void)
{
	_cleanup_(broker_stopp) struct broker *broker = NULL;
	const uint64_t before = capabilities_permitted();

	if (broker_start(&broker))
		return NO_START;
	if (capabilities_permitted() != (before & ~CAPABILITY_BIT(CAP_SYS_ADMIN)))
		return NOT_DROPPED;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_SYS_ADMIN, 0, 0) == 1)
		return NOT_DROPPED;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? GOOD : NOT_BACK;
}

static void test_admin_is_gone(void **state)
{
	if (!has_admin())
		skip();
	assert_int_equal(run_child(body_admin_is_gone), GOOD);
}

/* This process has no privilege left, so each event that opens was opened by the broker process. */
static int body_broker_opens(void)
{
	_cleanup_(broker_stopp) struct broker *broker = NULL;
	_cleanup_(closep) int event = -1;
	int r = broker_start(&broker);

	if (r)
		return NO_START;
	if (capabilities_limit(0))
		return NOT_DROPPED;
	if (broker_open_sampling(NULL, &sampling, &event) != -EACCES)
		return NOT_REFUSED;
	if (broker_open_sampling(broker, &sampling, &event) || event < 0)
		return NO_EVENT;
	return fcntl(event, F_GETFD) & FD_CLOEXEC ? GOOD : NOT_CLOEXEC;
}

static void test_broker_opens(void **state)
{
	if (!has_admin())
		skip();
	assert_int_equal(run_child(body_broker_opens), GOOD);
}

/* An error of the kernel is returned, and the next request is answered as usual. */
static int body_errors_come_back(void)
{
	static const struct broker_kprobe none = { .function = "no_such_function_at_all" };
	struct broker_sampling offline = sampling;
	_cleanup_(broker_stopp) struct broker *broker = NULL;
	_cleanup_(closep) int event = -1;
	int r;

	if (broker_start(&broker))
		return NO_START;
	if (capabilities_limit(0))
		return NOT_DROPPED;
	offline.cpu = 4000;
	r = broker_open_sampling(broker, &offline, &event);
	if ((r != -ENODEV && r != -EINVAL) || event != -1) /* the CPU is offline, or not possible */
		return NOT_REFUSED;
	/* a kernel without kprobes returns -EOPNOTSUPP or -ENODEV, others -ENOENT */
	r = broker_open_kprobe(broker, &none, &event);
	if (r >= 0 || event != -1)
		return NOT_BACK;
	return broker_open_sampling(broker, &sampling, &event) ? NO_EVENT : GOOD;
}

static void test_errors_come_back(void **state)
{
	if (!has_admin())
		skip();
	assert_int_equal(run_child(body_errors_come_back), GOOD);
}

/* The linker defines this symbol: where the program begins in memory. */
extern const char __executable_start;

/* The broker process opens a uprobe in a file that the daemon has opened. */
static int body_uprobe_opens(void)
{
	const struct broker_uprobe here = {
		.path = "/proc/self/exe",
		.offset = (uintptr_t)body_errors_come_back - (uintptr_t)&__executable_start,
	};
	const struct broker_uprobe nowhere = { .path = "/nowhere/at/all", .offset = 64 };
	_cleanup_(broker_stopp) struct broker *broker = NULL;
	_cleanup_(closep) int event = -1;

	if (broker_start(&broker))
		return NO_START;
	if (capabilities_limit(0))
		return NOT_DROPPED;
	if (broker_open_uprobe(NULL, &here, &event) != -EACCES)
		return NOT_REFUSED;
	if (broker_open_uprobe(broker, &nowhere, &event) != -ENOENT)
		return NOT_BACK;
	return broker_open_uprobe(broker, &here, &event) ? NO_EVENT : GOOD;
}

static void test_uprobe_opens(void **state)
{
	if (!has_admin() || access("/sys/bus/event_source/devices/uprobe/type", R_OK) < 0)
		skip();
	assert_int_equal(run_child(body_uprobe_opens), GOOD);
}

/* Starts a broker process; the test sends its messages itself, over *fd_out. */
static pid_t process_new(int *fd_out)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		broker_process_run(fds[1]);
	close(fds[1]);
	*fd_out = fds[0];
	return pid;
}

static int process_end(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void test_process_checks(void **state)
{
	_cleanup_(closep) int fd = -1;
	struct perf_request q = good_sampling();
	struct broker_answer answer;
	pid_t pid = process_new(&fd);

	q.kind = 77;
	assert_int_equal(send(fd, &q, sizeof(q), 0), sizeof(q));
	assert_int_equal(recv(fd, &answer, sizeof(answer), 0), sizeof(answer));
	assert_int_equal(answer.result, -EINVAL);
	/* it follows no path */
	q = (struct perf_request){ .kind = PERF_UPROBE, .path = "/bin/true" };
	assert_int_equal(send(fd, &q, sizeof(q), 0), sizeof(q));
	assert_int_equal(recv(fd, &answer, sizeof(answer), 0), sizeof(answer));
	assert_int_equal(answer.result, -EINVAL);
	/* a message of another length is not from the daemon: the process exits */
	assert_int_equal(send(fd, &q, sizeof(q) - 1, 0), sizeof(q) - 1);
	assert_int_equal(recv(fd, &answer, sizeof(answer), 0), 0);
	assert_int_equal(process_end(pid), 0);
}

/* Returns the pid of this process's only child; 0 if it has none. */
static pid_t child_pid(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/thread-self/children", "re");
	int pid = 0;

	return f && fscanf(f, "%d", &pid) == 1 ? pid : 0;
}

/*
 * A process that hangs is asked no more, until its answer has come; the answer is dropped. A
 * process that hangs at the end is killed.
 */
static int body_process_hangs(void)
{
	struct broker *broker;
	int event = -1;
	int64_t begun;
	pid_t pid;

	if (broker_start(&broker))
		return NO_START;
	pid = child_pid();
	if (!pid || capabilities_limit(0))
		return NOT_DROPPED;
	kill(pid, SIGSTOP);
	if (broker_open_sampling(broker, &sampling, &event) != -EACCES || event != -1)
		return NOT_REFUSED;
	begun = clock_ns(CLOCK_MONOTONIC);
	if (broker_open_sampling(broker, &sampling, &event) != -EACCES ||
	    clock_ns(CLOCK_MONOTONIC) - begun > 5 * NS_PER_S)
		return NOT_REFUSED;
	kill(pid, SIGCONT);
	while (broker_open_sampling(broker, &sampling, &event))
		usleep(10000);
	close(event);
	kill(pid, SIGSTOP);
	broker_stop(broker);
	return kill(pid, 0) < 0 && errno == ESRCH ? GOOD : NOT_BACK;
}

static void test_process_hangs(void **state)
{
	if (!has_admin())
		skip();
	assert_int_equal(run_child(body_process_hangs), GOOD);
}

/* A process that was killed is reaped and named, and no request waits for it. */
static int body_process_killed(void)
{
	_cleanup_(broker_stopp) struct broker *broker = NULL;
	char text[256];
	int event = -1;
	pid_t pid;

	if (broker_start(&broker))
		return NO_START;
	pid = child_pid();
	if (!pid || capabilities_limit(0) || broker_problem(broker))
		return NOT_DROPPED;
	kill(pid, SIGKILL);
	while (!broker_problem(broker))
		usleep(10000);
	if (kill(pid, 0) == 0 || errno != ESRCH)
		return NOT_BACK;
	if (broker_open_sampling(broker, &sampling, &event) != -EACCES)
		return NOT_REFUSED;
	broker_refusal(broker, text, sizeof(text));
	return strstr(text, "stackd-broker has ended") ? GOOD : NOT_REFUSED;
}

static void test_process_killed(void **state)
{
	if (!has_admin())
		skip();
	assert_int_equal(run_child(body_process_killed), GOOD);
}

static void test_process_outlives_signals(void **state)
{
	_cleanup_(closep) int fd = -1;
	struct perf_request q = { .kind = 77 };
	struct broker_answer answer;
	pid_t pid = process_new(&fd);

	assert_int_equal(send(fd, &q, sizeof(q), 0), sizeof(q));
	assert_int_equal(recv(fd, &answer, sizeof(answer), 0), sizeof(answer));
	assert_int_equal(kill(pid, SIGTERM), 0);
	assert_int_equal(kill(pid, SIGINT), 0);
	assert_int_equal(send(fd, &q, sizeof(q), 0), sizeof(q));
	assert_int_equal(recv(fd, &answer, sizeof(answer), 0), sizeof(answer));
	closep(&fd);
	fd = -1;
	assert_int_equal(process_end(pid), 0);
}

/*
 * A request that is not valid is refused, and a valid one does not hang without a broker process.
 */
static void test_process_gone(void **state)
{
	_cleanup_(broker_stopp) struct broker *broker = NULL;
	struct broker_sampling odd = sampling;
	int event = -1, r;

	assert_int_equal(broker_start(&broker), 0);
	odd.frequency_hz = 0;
	assert_int_equal(broker_open_sampling(broker, &odd, &event), -EINVAL);
	r = broker_open_sampling(broker, &sampling, &event);
	assert_true(r == 0 || r == -EACCES || r == -EPERM || r == -ENOENT);
	closep(&event);
}

/* Sends two descriptors with one message. */
static void pair_send(int fd, int file)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control = {};
	uint64_t word = 7;
	struct iovec bytes = { &word, sizeof(word) };
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int files[2] = { file, file };

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(files));
	memcpy(CMSG_DATA(&control.header), files, sizeof(files));
	assert_int_equal(sendmsg(fd, &message, 0), sizeof(word));
}

/* A message of another size is an error, and the descriptor that came with it is closed. */
static void test_messages(void **state)
{
	_cleanup_(closep) int a = -1, b = -1, file = -1, next = -1;
	int fds[2], passed = -1;
	uint64_t word = 7, got = 0;

	(void)state;
	assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), errno);
	a = fds[0];
	b = fds[1];
	file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(broker_message_send(a, &word, sizeof(word), -1), 0);
	assert_int_equal(broker_message_receive(b, &got, sizeof(got), &passed), 0);
	assert_int_equal(got, word);
	assert_int_equal(passed, -1);
	next = dup(file);
	closep(&next);
	assert_int_equal(broker_message_send(a, &word, sizeof(word) - 1, file), 0);
	assert_int_equal(broker_message_receive(b, &got, sizeof(got), &passed), -EIO);
	assert_int_equal(broker_message_send(a, &word, sizeof(word), file), 0);
	assert_int_equal(broker_message_receive(b, &got, sizeof(got) - 1, &passed), -EIO);
	assert_int_equal(passed, -1);
	assert_int_equal(broker_message_send(a, &word, sizeof(word), file), 0);
	assert_int_equal(broker_message_receive(b, &got, sizeof(got), &passed), 0);
	assert_int_equal(passed, next);
	assert_int_equal(fcntl(passed, F_GETFD), FD_CLOEXEC);
	closep(&passed);
	pair_send(a, file);
	assert_int_equal(broker_message_receive(b, &got, sizeof(got), &passed), -EIO);
	passed = dup(file);
	assert_int_equal(passed, next); /* nothing was left open */
	next = passed;
	closep(&a);
	a = -1;
	assert_int_equal(broker_message_receive(b, &got, sizeof(got), &passed), -EIO);
}

static void test_refusal(void **state)
{
	char text[256] = "";

	broker_refusal(NULL, text, sizeof(text));
	assert_non_null(strstr(text, "perf"));
	broker_refusal(NULL, text, 8);
	assert_int_equal(strlen(text), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checks_fields),
		cmocka_unit_test(test_checks_symbols),
		cmocka_unit_test(test_checks_paths),
		cmocka_unit_test(test_admin_is_gone),
		cmocka_unit_test(test_broker_opens),
		cmocka_unit_test(test_errors_come_back),
		cmocka_unit_test(test_uprobe_opens),
		cmocka_unit_test(test_process_checks),
		cmocka_unit_test(test_process_hangs),
		cmocka_unit_test(test_process_killed),
		cmocka_unit_test(test_process_outlives_signals),
		cmocka_unit_test(test_process_gone),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

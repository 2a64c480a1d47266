/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/broker/helper.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/broker/message.h"
#include "daemon/broker/perf_event.h"
#include "daemon/host/capabilities.h"

#if defined(__x86_64__)
#define BROKER_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define BROKER_ARCH AUDIT_ARCH_AARCH64
#else
#error "define BROKER_ARCH: the AUDIT_ARCH_ of this CPU, for the filter of system calls"
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define ALLOW(nr)                                            \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##nr, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/*
 * Allows this process only the system calls that are needed to answer requests. An attacker who
 * takes control of the process can thus open perf events, but do nothing else.
 */
static int system_calls_limit(void)
{
	struct sock_filter filter[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BROKER_ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		ALLOW(ppoll),
		ALLOW(recvmsg),
		ALLOW(sendmsg),
		ALLOW(perf_event_open),
		ALLOW(close),
		ALLOW(restart_syscall),
		ALLOW(exit_group),
#ifdef __SANITIZE_ADDRESS__
		ALLOW(sigaltstack), /* AddressSanitizer calls it before the process exits */
#endif
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog program = {
		.len = (unsigned short)ARRAY_SIZE(filter),
		.filter = filter,
	};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

/*
 * Isolates the broker process. Closes every descriptor but the socket fd. Ignores the signals that
 * end or reload the daemon, because the broker process shall exit only when the other end of the
 * socket is closed. Drops every capability but CAP_SYS_ADMIN.
 */
static int process_isolate(int fd)
{
	static const int ignored[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };
	size_t i;

	prctl(PR_SET_NAME, "stackd-broker");
	for (i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	if (fd > 0 && close_range(0, (unsigned int)fd - 1, 0) < 0)
		return -errno;
	if (close_range((unsigned int)fd + 1, ~0U, 0) < 0)
		return -errno;
	return capabilities_limit(CAPABILITY_BIT(CAP_SYS_ADMIN));
}

/*
 * Checks a request, and replaces the path of a uprobe by the /proc path of the descriptor `file`,
 * which came with the request: the broker process itself follows no path. The path may also lie
 * in the root directory of another process, or lead to another file meanwhile. Returns 0
 * or -EINVAL.
 */
static int request_prepare(struct perf_request *request, int file)
{
	int r = perf_request_check(request);

	if (r || request->kind != PERF_UPROBE)
		return r;
	if (file < 0)
		return -EINVAL;
	snprintf(request->path, sizeof(request->path), "/proc/self/fd/%d", file);
	return 0;
}

/*
 * Receives a request, as broker_message_receive() does. Waits for it in ppoll(), and not in
 * recvmsg(), so that this wait counts as idle in the answers of stackd.
 */
static int request_receive(int fd, struct perf_request *request, int *file_out)
{
	struct pollfd readable = { .fd = fd, .events = POLLIN };

	ppoll(&readable, 1, NULL, NULL);
	return broker_message_receive(fd, request, sizeof(*request), file_out);
}

noreturn void broker_process_run(int fd)
{
	struct perf_request request;
	struct perf_types types;
	int file = -1, r = 0;

	perf_types_read(&types);
	if (process_isolate(fd) < 0 || system_calls_limit() < 0)
		_exit(EXIT_FAILURE);
	while (!r && !request_receive(fd, &request, &file)) {
		struct broker_answer answer = { .result = request_prepare(&request, file) };
		int passed = -1;

		if (!answer.result)
			answer.result = perf_request_open(&request, &types, &passed);
		r = broker_message_send(fd, &answer, sizeof(answer), passed);
		closep(&passed);
		closep(&file);
		file = -1;
	}
	_exit(EXIT_SUCCESS);
}

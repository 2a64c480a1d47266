/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stands for a process that opens files and fails, for test_opener.c. The path that it is to open
 * says what it does.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/host/fd_message.h"
#include "daemon/host/helper_process.h"
#include "daemon/host/open_here.h"
#include "daemon/host/opener_message.h"
#include "daemon/host/sandbox.h"

static bool has_landlock;

/* Tries what a process that opens files must not be able to do. Returns a bit for each success. */
static int escape(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/run/stackd.socket" };
	int fds[2], done = 0;

	if (sandbox_open_only() || open("/dev/null", O_RDONLY) < 0)
		return 1;
	done |= (open("/tmp/opener_hostile", O_RDWR | O_CREAT, 0600) >= 0 && has_landlock) << 1;
	done |= (open("/dev/null", O_WRONLY) >= 0 && has_landlock) << 2;
	done |= (socket(AF_UNIX, SOCK_STREAM, 0) >= 0) << 3;
	done |= (connect(HELPER_SOCKET_FD, (void *)&address, sizeof(address)) == 0) << 4;
	done |= (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0) << 5;
	done |= (kill(getppid(), 0) == 0) << 6;
	done |= (syscall(SYS_fork) >= 0) << 7;
	done |= (execl("/bin/true", "true", NULL) == 0) << 8;
	done |= (unlink("/nowhere") == 0 || errno != EPERM) << 9;
	done |= (syscall(SYS_ptrace, 0, 0, 0, 0) >= 0) << 10;
	done |= (syscall(SYS_process_vm_writev, getppid(), NULL, 0, NULL, 0, 0) >= 0) << 11;
	done |= (syscall(SYS_bpf, 0, NULL, 0) >= 0 || errno != EPERM) << 12;
	done |= (ftruncate(HELPER_SOCKET_FD, 0) == 0 || errno != EPERM) << 13;
	return done;
}

static void serve(const char *path, int at_fd)
{
	struct opener_answer answer = { 0 };

	if (!strcmp(path, "hang"))
		for (;;)
			pause();
	if (!strcmp(path, "die"))
		_exit(1);
	if (!strcmp(path, "cut"))
		fd_message_send(HELPER_SOCKET_FD, &answer, 1, NULL, 0);
	if (!strcmp(path, "nothing"))
		fd_message_send(HELPER_SOCKET_FD, &answer, sizeof(answer), NULL, 0);
	answer.error = 1;
	if (!strcmp(path, "positive"))
		fd_message_send(HELPER_SOCKET_FD, &answer, sizeof(answer), NULL, 0);
	answer.error = -1;
	if (!strcmp(path, "both"))
		fd_message_send(HELPER_SOCKET_FD, &answer, sizeof(answer), &at_fd, 1);
	if (!strcmp(path, "escape")) {
		answer.error = -1 - escape();
		fd_message_send(HELPER_SOCKET_FD, &answer, sizeof(answer), NULL, 0);
	}
	answer.error = 0;
	if (!strcmp(path, "fine"))
		fd_message_send(HELPER_SOCKET_FD, &answer, sizeof(answer), &at_fd, 1);
}

int main(void)
{
	struct open_request request;
	int fd;

	has_landlock =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
	while (fd_message_receive(HELPER_SOCKET_FD, &request, sizeof(request), &fd, 1) > 0) {
		serve(request.path, fd);
		closep(&fd);
	}
	return 0;
}

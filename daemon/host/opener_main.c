/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <poll.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "common/base.h"
#include "daemon/host/fd_message.h"
#include "daemon/host/helper_process.h"
#include "daemon/host/open_here.h"
#include "daemon/host/opener.h"
#include "daemon/host/opener_message.h"
#include "daemon/host/sandbox.h"

/*
 * Receives a request and its descriptor. Waits for it in ppoll(), and not in recvmsg(), so that
 * this wait counts as idle in the answers of stackd.
 */
static ssize_t request_receive(struct open_request *request, int *fd_out)
{
	struct pollfd readable = { .fd = HELPER_SOCKET_FD, .events = POLLIN };

	ppoll(&readable, 1, NULL, NULL);
	return fd_message_receive(HELPER_SOCKET_FD, request, sizeof(*request), fd_out, 1);
}

/* Answers one request. Returns false if the daemon has gone or sends what it never would. */
static bool serve(int64_t *counted_ns)
{
	struct opener_answer answer = { 0 };
	struct open_request request;
	int at_fd, fd, r;
	int64_t now;
	ssize_t n = request_receive(&request, &at_fd);

	if (n <= (ssize_t)offsetof(struct open_request, path) || ((char *)&request)[n - 1]) {
		closep(&at_fd);
		return false;
	}
	fd = open_here(&request, at_fd);
	answer.error = fd < 0 ? fd : 0;
	now = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	answer.cpu_ns = (uint64_t)(now - *counted_ns);
	*counted_ns = now;
	r = fd_message_send(HELPER_SOCKET_FD, &answer, sizeof(answer), &fd, fd >= 0);
	closep(&fd);
	closep(&at_fd);
	return r == 0;
}

int opener_main(void)
{
	int64_t counted_ns = 0;

	prctl(PR_SET_NAME, OPENER_PROCESS_NAME);
	helper_process_ignore_signals();
	if (sandbox_open_only() < 0)
		return EXIT_FAILURE;
	while (serve(&counted_ns))
		;
	return EXIT_SUCCESS;
}

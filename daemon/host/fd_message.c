/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/fd_message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base.h"

enum { FDS_MAX = 2 };

union descriptors {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

int fd_message_send(int fd, const void *data, size_t size, const int *fds, size_t n_fds)
{
	struct iovec part = { (void *)(uintptr_t)data, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	union descriptors control = { 0 };
	struct cmsghdr *header;
	ssize_t n;

	if (n_fds) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(header), fds, n_fds * sizeof(int));
	}
	do {
		n = sendmsg(fd, &message, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : -EMSGSIZE;
}

/* Stores the descriptors of a message in `fds`, and closes those for which there is no room. */
static void descriptors_take(struct msghdr *message, int *fds, size_t n_fds)
{
	size_t n = 0;

	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
	     header = CMSG_NXTHDR(message, header)) {
		size_t n_sent = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n_sent; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
			if (n < n_fds)
				fds[n++] = fd;
			else
				close(fd);
		}
	}
}

ssize_t fd_message_receive(int fd, void *data, size_t size, int *fds, size_t n_fds)
{
	struct iovec part = { data, size };
	union descriptors control;
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = n_fds ? control.bytes : NULL,
		.msg_controllen = n_fds ? CMSG_SPACE(n_fds * sizeof(int)) : 0,
	};
	ssize_t n;

	for (size_t i = 0; i < n_fds; i++)
		fds[i] = -1;
	do {
		n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	descriptors_take(&message, fds, n_fds);
	return n;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/broker/message.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base.h"

union passed {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

int broker_message_send(int fd, const void *data, size_t size, int file)
{
	union passed control = {};
	struct iovec bytes = { (void *)(uintptr_t)data, size };
	struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1 };
	ssize_t n;

	if (file >= 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(file));
		memcpy(CMSG_DATA(&control.header), &file, sizeof(file));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	n = sendmsg(fd, &message, MSG_NOSIGNAL);
	if (n < 0)
		return -errno;
	return n == (ssize_t)size ? 0 : -EIO;
}

/* Returns the descriptor that came with the message; -1 if none did. */
static int passed_file(struct msghdr *message)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	int file = -1;

	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(file)))
		memcpy(&file, CMSG_DATA(header), sizeof(file));
	return file;
}

int broker_message_receive(int fd, void *data, size_t size, int *file_out)
{
	_cleanup_(closep) int file = -1;
	union passed control = {};
	struct iovec bytes = { data, size };
	struct msghdr message = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	do {
		n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	file = passed_file(&message);
	if (n != (ssize_t)size || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EIO;
	*file_out = file;
	file = -1;
	return 0;
}

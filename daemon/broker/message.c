/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/broker/message.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base.h"

union passed {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

/* Number of descriptors for which struct passed has room. */
enum { FILES_MAX = (CMSG_SPACE(sizeof(int)) - CMSG_LEN(0)) / sizeof(int) };

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

/*
 * Returns the descriptor that came with the message; -1 if none did. The space for one descriptor
 * has room for two, because it is padded: if two came, closes both and returns -EIO.
 */
static int passed_file(struct msghdr *message)
{
	struct cmsghdr *header = CMSG_FIRSTHDR(message);
	int files[FILES_MAX];
	size_t n, i;

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len < CMSG_LEN(0))
		return -1;
	n = (header->cmsg_len - CMSG_LEN(0)) / sizeof(files[0]);
	if (n > FILES_MAX)
		n = FILES_MAX;
	memcpy(files, CMSG_DATA(header), n * sizeof(files[0]));
	if (n == 1)
		return files[0];
	for (i = 0; i < n; i++)
		close(files[i]);
	return n ? -EIO : -1;
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
	if (n != (ssize_t)size || file == -EIO || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EIO;
	*file_out = file;
	file = -1;
	return 0;
}

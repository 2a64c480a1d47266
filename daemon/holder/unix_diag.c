/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/holder/unix_diag.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* REPLY_MS: the kernel answers while the request is sent, so that this is for a lost answer only.
 */
enum { REPLY_BYTES = 8192, REPLY_MS = 50 };

int unix_diag_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);

	return fd < 0 ? -errno : fd;
}

bool unix_diag_is(int fd)
{
	int domain = 0, protocol = -1;
	socklen_t size = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_NETLINK &&
	       getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
	       protocol == NETLINK_SOCK_DIAG;
}

static int request_send(int fd, uint32_t inode, uint32_t sequence)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	const struct {
		struct nlmsghdr header;
		struct unix_diag_req body;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST,
			    .nlmsg_seq = sequence },
		.body = { .sdiag_family = AF_UNIX,
			  .udiag_states = UINT32_MAX,
			  .udiag_ino = inode,
			  .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER,
			  .udiag_cookie = { UINT32_MAX, UINT32_MAX } },
	};
	ssize_t n = sendto(fd, &request, sizeof(request), MSG_DONTWAIT,
			   (const struct sockaddr *)&kernel, sizeof(kernel));

	return n < 0 ? -errno : 0;
}

static void name_copy(const char *from, size_t length, struct unix_socket *out)
{
	bool is_abstract = length && !from[0];
	size_t n = is_abstract ? length - 1 : strnlen(from, length);

	if (n > sizeof(out->name) - 2)
		n = sizeof(out->name) - 2;
	if (is_abstract)
		out->name[0] = '@';
	memcpy(out->name + is_abstract, from + is_abstract, n);
	out->name[is_abstract + n] = '\0';
	/* Abstract names may have zeros inside. ss(8) shows them as @, too. */
	for (size_t i = 0; i < is_abstract + n; i++)
		if (!out->name[i])
			out->name[i] = '@';
}

static int reply_parse(const struct nlmsghdr *header, struct unix_socket *out)
{
	const struct unix_diag_msg *body = NLMSG_DATA(header);
	struct unix_socket found = {};
	unsigned int left;

	if (header->nlmsg_type == NLMSG_ERROR)
		return header->nlmsg_len < NLMSG_LENGTH(sizeof(struct nlmsgerr))
			       ? -EPROTO
			       : ((const struct nlmsgerr *)NLMSG_DATA(header))->error;
	if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    header->nlmsg_len < NLMSG_LENGTH(sizeof(*body)) || body->udiag_family != AF_UNIX)
		return -EPROTO;
	found.is_listening = body->udiag_state == TCP_LISTEN;
	left = header->nlmsg_len - (unsigned int)NLMSG_LENGTH(sizeof(*body));
	for (const struct rtattr *at = (const struct rtattr *)(body + 1); RTA_OK(at, left);
	     at = RTA_NEXT(at, left)) {
		if (at->rta_type == UNIX_DIAG_PEER && RTA_PAYLOAD(at) >= sizeof(found.peer)) {
			memcpy(&found.peer, RTA_DATA(at), sizeof(found.peer));
			found.has_peer = true;
		} else if (at->rta_type == UNIX_DIAG_NAME) {
			name_copy(RTA_DATA(at), RTA_PAYLOAD(at), &found);
		}
	}
	*out = found;
	return 0;
}

int unix_diag_ask(int fd, uint32_t inode, struct unix_socket *out)
{
	/* A process that was ended may have left answers in the socket: they have another number.
	 */
	static uint32_t calls;
	uint32_t sequence = (uint32_t)getpid() << 8 ^ ++calls;
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	_Alignas(struct nlmsghdr) char reply[REPLY_BYTES];
	const struct nlmsghdr *header = (const void *)reply;
	int r = request_send(fd, inode, sequence);
	ssize_t n;

	while (!r) {
		if (poll(&wait, 1, REPLY_MS) <= 0)
			return -ETIMEDOUT;
		n = recv(fd, reply, sizeof(reply), MSG_DONTWAIT);
		if (n < 0 && errno != EINTR && errno != ENOBUFS)
			return -errno;
		if (n >= (ssize_t)sizeof(*header) && NLMSG_OK(header, (size_t)n) &&
		    header->nlmsg_seq == sequence)
			return reply_parse(header, out);
	}
	return r;
}

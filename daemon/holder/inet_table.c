/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/holder/inet_table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/base.h"

/* SOCKETS_MAX: the maximum number of sockets of a namespace that are read. */
enum { SOCKETS_MAX = 1 << 17, WORD_DIGITS = 8, LINE_BYTES = 512, LINES_PER_CHECK = 256 };

static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

/* Parses an address, which the kernel prints as one or four words in the order of the host. */
static bool end_parse(const char *digits, unsigned int port, struct inet_end *out)
{
	size_t n = strlen(digits) / WORD_DIGITS;
	unsigned char *at = out->address;

	if ((n != 1 && n != 4) || strlen(digits) % WORD_DIGITS || port > UINT16_MAX)
		return false;
	if (n == 1) {
		memcpy(at, mapped, sizeof(mapped));
		at += sizeof(mapped);
	}
	for (size_t i = 0; i < n; i++, at += sizeof(uint32_t)) {
		char word[WORD_DIGITS + 1] = "";
		uint32_t value;

		memcpy(word, digits + i * WORD_DIGITS, WORD_DIGITS);
		value = (uint32_t)strtoul(word, NULL, 16);
		memcpy(at, &value, sizeof(value));
	}
	out->port = (uint16_t)port;
	return true;
}

bool inet_line_parse(const char *line, struct inet_socket *out)
{
	struct inet_socket socket = {};
	char local[33], remote[33];
	unsigned int local_port, remote_port;

	if (sscanf(line,
		   " %*u: %32[0-9A-F]:%x %32[0-9A-F]:%x %x %x:%x %*x:%*x %*x %*u %*u %" SCNu64,
		   local, &local_port, remote, &remote_port, &socket.state, &socket.unsent,
		   &socket.unread, &socket.inode) != 8 ||
	    !end_parse(local, local_port, &socket.local) ||
	    !end_parse(remote, remote_port, &socket.remote))
		return false;
	*out = socket;
	return true;
}

static int file_read(struct inet_table *table, int32_t pid, const char *name, int64_t deadline_ns)
{
	struct inet_socket socket;
	char line[LINE_BYTES];
	size_t lines = 0;

	snprintf(line, sizeof(line), "/proc/%" PRId32 "/net/%s", pid, name);
	_cleanup_(fclosep) FILE *f = fopen(line, "re");
	if (!f)
		return errno == ENOENT ? 0 : -errno;
	while (fgets(line, sizeof(line), f)) {
		/* What has no inode belongs to no process any more. */
		if (!inet_line_parse(line, &socket) || !socket.inode)
			continue;
		if (table->n == SOCKETS_MAX)
			return -ENOSPC;
		if (++lines % LINES_PER_CHECK == 0 && clock_ns(CLOCK_MONOTONIC) > deadline_ns)
			return -ETIMEDOUT;
		if (array_reserve(table->v, table->capacity, table->n + 1))
			return -ENOMEM;
		table->v[table->n++] = socket;
	}
	return 0;
}

int inet_table_read(struct inet_table *table, int32_t pid, bool is_udp, int64_t deadline_ns)
{
	int r = file_read(table, pid, is_udp ? "udp" : "tcp", deadline_ns);

	if (!r)
		r = file_read(table, pid, is_udp ? "udp6" : "tcp6", deadline_ns);
	table->is_whole = !r;
	return r;
}

void inet_table_fini(struct inet_table *table)
{
	free(TAKE(table->v));
}

const struct inet_socket *inet_table_find(const struct inet_table *table, uint64_t inode)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->v[i].inode == inode)
			return &table->v[i];
	return NULL;
}

static bool ends_equal(const struct inet_end *a, const struct inet_end *b)
{
	return a->port == b->port && memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

static bool is_any(const struct inet_end *end)
{
	static const unsigned char none[16];

	return memcmp(end->address, none, sizeof(none)) == 0 ||
	       (memcmp(end->address, mapped, sizeof(mapped)) == 0 &&
		memcmp(end->address + sizeof(mapped), none, 4) == 0);
}

bool inet_is_loopback(const struct inet_end *end)
{
	static const unsigned char one[16] = { [15] = 1 };

	return memcmp(end->address, one, sizeof(one)) == 0 ||
	       (memcmp(end->address, mapped, sizeof(mapped)) == 0 && end->address[12] == 127);
}

bool inet_is_open_ended(const struct inet_socket *socket)
{
	return socket->state == TCP_LISTEN || (is_any(&socket->remote) && !socket->remote.port);
}

const struct inet_socket *inet_table_peer(const struct inet_table *table,
					  const struct inet_socket *socket)
{
	const bool is_here = inet_is_loopback(&socket->remote) ||
			     memcmp(socket->local.address, socket->remote.address,
				    sizeof(socket->local.address)) == 0;
	const struct inet_socket *listener = NULL;

	if (inet_is_open_ended(socket))
		return NULL;
	for (size_t i = 0; i < table->n; i++) {
		const struct inet_socket *other = &table->v[i];

		if (ends_equal(&other->local, &socket->remote) &&
		    ends_equal(&other->remote, &socket->local))
			return other;
		if (is_here && inet_is_open_ended(other) &&
		    other->local.port == socket->remote.port &&
		    (is_any(&other->local) || ends_equal(&other->local, &socket->remote)))
			listener = other;
	}
	return listener;
}

void inet_end_text(const struct inet_end *end, char text[static INET_END_TEXT])
{
	bool is_v4 = memcmp(end->address, mapped, sizeof(mapped)) == 0;
	char address[INET6_ADDRSTRLEN];

	inet_ntop(is_v4 ? AF_INET : AF_INET6, end->address + (is_v4 ? sizeof(mapped) : 0), address,
		  sizeof(address));
	snprintf(text, INET_END_TEXT, is_v4 ? "%s:%u" : "[%s]:%u", address, end->port);
}

const char *inet_state_word(unsigned int state)
{
	static const char *const words[] = {
		[TCP_ESTABLISHED] = "established", [TCP_SYN_SENT] = "syn-sent",
		[TCP_SYN_RECV] = "syn-recv",	   [TCP_FIN_WAIT1] = "fin-wait-1",
		[TCP_FIN_WAIT2] = "fin-wait-2",	   [TCP_TIME_WAIT] = "time-wait",
		[TCP_CLOSE] = "unconnected",	   [TCP_CLOSE_WAIT] = "close-wait",
		[TCP_LAST_ACK] = "last-ack",	   [TCP_LISTEN] = "listening",
		[TCP_CLOSING] = "closing",
	};

	return state < ARRAY_SIZE(words) && words[state] ? words[state] : "unknown state";
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOLDER_INET_TABLE_H
#define STACKD_DAEMON_HOLDER_INET_TABLE_H

/*
 * The TCP and UDP sockets of the network namespace of a process, from /proc/PID/net. It needs no
 * privilege and no namespace to be entered, so that it works for containers, too. One thread at a
 * time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An address and a port; an IPv4 address is that of IPv6 which stands for it (::ffff:a.b.c.d). */
struct inet_end {
	unsigned char address[16];
	uint16_t port;
};

struct inet_socket {
	uint64_t inode;
	struct inet_end local, remote;
	unsigned int state; /* TCP_ESTABLISHED and so on, of UDP, too */
	/* bytes that were not acknowledged or not sent, and bytes that were not read */
	unsigned int unsent, unread;
};

struct inet_table {
	struct inet_socket *v;
	size_t n, capacity;
	bool is_whole; /* everything was read */
};

/* TEXT: room for the text of one end. */
enum { INET_END_TEXT = 64 };

/* Parses a line of /proc/net/tcp, tcp6, udp or udp6. Returns false for other lines. */
bool inet_line_parse(const char *line, struct inet_socket *out);

/* Reads the table of a process, of TCP or of UDP. Ends at deadline_ns of CLOCK_MONOTONIC. */
int inet_table_read(struct inet_table *table, int32_t pid, bool is_udp, int64_t deadline_ns);
void inet_table_fini(struct inet_table *table);

const struct inet_socket *inet_table_find(const struct inet_table *table, uint64_t inode);

/*
 * Returns the socket at the other end of a connection: that which has the ends the other way round,
 * or if there is none and the connection is being made, the one that listens there. NULL if the
 * other end is not in this table.
 */
const struct inet_socket *inet_table_peer(const struct inet_table *table,
					  const struct inet_socket *socket);

/* True if there is no other end: the socket listens, or takes packets from anybody. */
bool inet_is_open_ended(const struct inet_socket *socket);

/* True if the address of the other end stands for this host or network namespace itself. */
bool inet_is_loopback(const struct inet_end *end);

/* Writes "10.0.0.1:80" or "[fe80::1]:80". */
void inet_end_text(const struct inet_end *end, char text[static INET_END_TEXT]);

/* Returns the word that ss(8) has for a state. */
const char *inet_state_word(unsigned int state);

#endif

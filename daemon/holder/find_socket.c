/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/array.h"
#include "daemon/holder/internal.h"
#include "daemon/holder/unix_diag.h"

/* Adds the processes that have the socket with an inode open. */
static void owners_add(struct task *task, uint64_t inode, struct holder_answer *out)
{
	const struct descriptor *owners;
	size_t n;

	owners = task_descriptors(task, DESCRIPTOR_SOCKET, inode, &n);
	for (size_t i = 0; i < n; i++)
		holder_add_process(out, owners[i].pid);
	if (!task->search->descriptors.is_whole)
		out->unknown = holder_took_too_long;
	else if (!out->n)
		out->unknown = "no process was found that has the other end open";
}

/* Returns the table of TCP or UDP of the network namespace of the thread's process, or NULL. */
static const struct inet_table *table_of(struct task *task, bool is_udp)
{
	struct holder_search *search = task->search;
	struct inet_namespace *namespace = NULL;
	char name[64] = "";

	if (readlinkat(task->dir_fd, "ns/net", name, sizeof(name) - 1) < 0)
		return NULL;
	for (size_t i = 0; i < search->n_namespaces && !namespace; i++)
		if (search->namespaces[i].is_udp == is_udp &&
		    strcmp(search->namespaces[i].name, name) == 0)
	namespace = &search->namespaces[i];
	if (!namespace) {
		if (array_reserve(search->namespaces, search->namespaces_capacity,
				  search->n_namespaces + 1))
			return NULL;
		namespace = &search->namespaces[search->n_namespaces++];
		*namespace = (struct inet_namespace){ .is_udp = is_udp };
		memcpy(namespace->name, name, sizeof(name));
		inet_table_read(&namespace->table, task->question->pid, is_udp,
				search_part_ns(search));
	}
	return &namespace->table;
}

static char *inet_object(const struct inet_socket *socket, bool is_udp)
{
	char local[INET_END_TEXT], remote[INET_END_TEXT], *text = NULL;
	const char *protocol = is_udp ? "UDP" : "TCP";
	bool is_open_ended = inet_is_open_ended(socket);
	int r;

	inet_end_text(&socket->local, local);
	inet_end_text(&socket->remote, remote);
	r = asprintf(&text, "%s %s%s%s, %s, %u bytes unread, %u %s", protocol, local,
		     is_open_ended ? "" : " to ", is_open_ended ? "" : remote,
		     inet_state_word(socket->state), socket->unread, socket->unsent,
		     is_udp ? "unsent" : "unacked");
	return r < 0 ? NULL : text;
}

/* Returns false if the namespace of the thread has no such socket. */
static bool inet_find(struct task *task, uint64_t inode, bool is_udp, struct holder_answer *out)
{
	const struct inet_table *table = table_of(task, is_udp);
	const struct inet_socket *socket = table ? inet_table_find(table, inode) : NULL;
	const struct inet_socket *peer;

	if (!socket)
		return false;
	out->object = inet_object(socket, is_udp);
	peer = inet_table_peer(table, socket);
	if (peer)
		owners_add(task, peer->inode, out);
	else if (!table->is_whole)
		out->unknown = holder_took_too_long;
	else if (inet_is_open_ended(socket))
		out->unknown = "any program may send to it";
	else if (inet_is_loopback(&socket->remote))
		out->unknown = "no process has the other end open";
	else
		out->unknown = "the other end is on another host or in another network namespace";
	return true;
}

static char *unix_object(uint64_t inode, const struct unix_socket *socket,
			 const struct unix_socket *peer)
{
	const char *name = socket->name[0] ? socket->name : peer->name;
	char *text = NULL;
	int r;

	if (name[0])
		r = asprintf(&text, "Unix socket %s", name);
	else
		r = asprintf(&text, "Unix socket %" PRIu64, inode);
	return r < 0 ? NULL : text;
}

static void unix_find(struct task *task, uint64_t inode, struct holder_answer *out)
{
	struct unix_socket socket, peer = {};
	int r = search_diag_fd(task->search);

	if (r >= 0)
		r = unix_diag_ask(r, (uint32_t)inode, &socket);
	if (r) {
		out->unknown =
			r == -ENOENT
				? "it is no TCP, UDP or Unix socket, or in another network namespace"
				: "stackd may not ask the kernel about sockets (sock_diag)";
		return;
	}
	if (socket.peer)
		unix_diag_ask(search_diag_fd(task->search), socket.peer, &peer);
	out->object = unix_object(inode, &socket, &peer);
	if (socket.peer)
		owners_add(task, socket.peer, out);
	else if (socket.has_peer)
		out->unknown = "the other end has not accepted the connection";
	else
		out->unknown = socket.is_listening ? "any program may connect"
						   : "the socket is not connected";
}

/* Fills *out for a socket by its inode; `reason` may say of which kind it is. */
static void socket_find(struct task *task, uint64_t inode, enum wait_reason reason,
			struct holder_answer *out)
{
	if (reason != REASON_UNIX && reason != REASON_UNIX_SEND &&
	    ((reason != REASON_UDP && inet_find(task, inode, false, out)) ||
	     (reason != REASON_TCP && inet_find(task, inode, true, out))))
		return;
	if (reason == REASON_TCP || reason == REASON_UDP)
		out->unknown = holder_went_on;
	else
		unix_find(task, inode, out);
}

/* Returns the only descriptor in the sets of a call of select(); -1 if there are several. */
static int selected_descriptor(const struct task *task)
{
	const uint64_t n = task->call.args[0];
	uint64_t words[FD_SETSIZE / 64];
	const size_t n_words = n / 64 + (n % 64 > 0);
	int found = -1;

	if (n > FD_SETSIZE)
		return -1;
	for (size_t set = 1; set <= 3; set++) {
		if (!task->call.args[set])
			continue;
		if (task_memory_read(task, task->call.args[set], words, n_words * sizeof(*words)))
			return -1;
		for (size_t i = 0; i < n; i++) {
			if (!(words[i / 64] >> (i % 64) & 1) || found == (int)i)
				continue;
			if (found >= 0)
				return -1;
			found = (int)i;
		}
	}
	return found;
}

/*
 * Returns the only descriptor that the thread waits for events of; -1 if there are several, or if
 * it does not wait for events.
 */
static int polled_descriptor(const struct task *task)
{
	struct pollfd one;

	switch (task->call.number) {
	case SYS_poll:
	case SYS_ppoll:
		if (task->call.args[1] != 1 ||
		    task_memory_read(task, task->call.args[0], &one, sizeof(one)))
			return -1;
		return one.fd;
	case SYS_select:
	case SYS_pselect6:
		return selected_descriptor(task);
	default:
		return -1;
	}
}

void holder_find_polled(struct task *task, struct holder_answer *out)
{
	char target[TASK_TARGET_BYTES] = "", name[64];
	const int fd = polled_descriptor(task);
	enum descriptor_kind kind;
	uint64_t inode;

	snprintf(name, sizeof(name), "fd/%d", fd);
	/* Nothing is said of what is no socket, or one of several: the wait may be for any. */
	if (fd >= 0 && readlinkat(task->dir_fd, name, target, sizeof(target) - 1) > 0 &&
	    descriptor_parse(target, &kind, &inode) && kind == DESCRIPTOR_SOCKET)
		socket_find(task, inode, task->question->reason, out);
}

void holder_find_request(struct task *task, struct holder_answer *out)
{
	char target[TASK_TARGET_BYTES];
	enum descriptor_kind kind;
	uint64_t inode;

	if (polled_descriptor(task) >= 0)
		holder_find_polled(task, out);
	else if (task_descriptor(task, false, target, sizeof(target)) >= 0 &&
		 descriptor_parse(target, &kind, &inode) && kind == DESCRIPTOR_SOCKET)
		socket_find(task, inode, REASON_SOCKET, out);
}

void holder_find_socket(struct task *task, struct holder_answer *out)
{
	enum wait_reason reason = task->question->reason;
	bool sends = reason == REASON_UNIX_SEND || reason == REASON_SOCKET_SEND;
	char target[TASK_TARGET_BYTES];
	enum descriptor_kind kind;
	uint64_t inode;

	if (task_descriptor(task, sends, target, sizeof(target)) < 0 ||
	    !descriptor_parse(target, &kind, &inode) || kind != DESCRIPTOR_SOCKET) {
		out->unknown = holder_went_on;
		return;
	}
	socket_find(task, inode, reason, out);
}

/* Finds the listening socket for whose clients a thread waits in accept(). */
static bool accepted_find(struct task *holder, uint64_t *inode_out)
{
	char target[TASK_TARGET_BYTES];
	enum descriptor_kind kind;

	return !task_call_read(holder) &&
	       (holder->call.number == SYS_accept || holder->call.number == SYS_accept4) &&
	       task_descriptor(holder, false, target, sizeof(target)) >= 0 &&
	       descriptor_parse(target, &kind, inode_out) && kind == DESCRIPTOR_SOCKET &&
	       task_call_is_same(holder);
}

static bool is_listened(const struct inet_table *table, uint16_t port)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->v[i].state == TCP_LISTEN && table->v[i].local.port == port)
			return true;
	return false;
}

/*
 * True if the thread's process has accepted a connection that is still open: it may wait in the
 * midst of a request. Also true if that is not known.
 */
static bool serves_client(const struct task *task, const struct inet_table *table)
{
	char path[64], target[TASK_TARGET_BYTES];
	const struct inet_socket *socket;
	enum descriptor_kind kind;
	struct dirent *entry;
	bool serves = false;
	uint64_t inode;
	DIR *directory;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/fd", task->question->pid);
	directory = proc_directory_open(path);
	while (directory && !serves && (entry = proc_number_next(directory))) {
		length = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);
		target[length < 0 ? 0 : length] = '\0';
		socket = descriptor_parse(target, &kind, &inode) && kind == DESCRIPTOR_SOCKET
				 ? inet_table_find(table, inode)
				 : NULL;
		serves = task_is_late(task) || (socket && !inet_is_open_ended(socket) &&
						is_listened(table, socket->local.port));
	}
	if (!directory)
		return true;
	closedir(directory);
	return serves;
}

/* True if the thread's process has a socket of TCP open that listens, and serves nobody. */
static bool is_free_to_accept(struct task *task, uint64_t inode)
{
	const struct inet_table *table = table_of(task, false);
	const struct descriptor *owners;
	bool has_it = false;
	size_t n;

	if (!table || !table->is_whole || !inet_table_find(table, inode))
		return false;
	owners = task_descriptors(task, DESCRIPTOR_SOCKET, inode, &n);
	for (size_t i = 0; i < n && !has_it; i++)
		has_it = owners[i].pid == task->question->pid;
	return has_it && !serves_client(task, table);
}

/*
 * Workers of a server may take turns to wait for clients. A worker that has a client, or a holder
 * that waits for something else, is no such case: somebody forgot to let go.
 */
void holder_find_turn(struct task *task, struct holder_answer *out)
{
	struct task holder = { .search = task->search };
	uint64_t inode;
	char path[64];

	if (out->n != 1 || out->more || out->unknown || !out->holders[0].tid)
		return;
	snprintf(path, sizeof(path), "/proc/%" PRId32 "/task/%" PRId32, out->holders[0].pid,
		 out->holders[0].tid);
	holder.dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (holder.dir_fd < 0)
		return;
	out->is_turn = accepted_find(&holder, &inode) && is_free_to_accept(task, inode);
	close(holder.dir_fd);
}

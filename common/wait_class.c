/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/wait_class.h"

static const char *const words[] = {
#define CLASS_WORD(name, word) [WAIT_CLASS_##name] = word,
	WAIT_CLASSES(CLASS_WORD)
#undef CLASS_WORD
};

const char *wait_class_word(enum wait_class class)
{
	return words[class];
}

enum wait_class wait_class_of(enum wait_reason reason)
{
	switch (reason) {
	case REASON_MUTEX ... REASON_FILE_LOCK:
	case REASON_SOCKET_LOCK:
	case REASON_KERNEL_MUTEX ... REASON_CGROUP_LOCK:
	case REASON_RCU:
		return WAIT_CLASS_LOCK;
	case REASON_PAGE_FAULT:
	case REASON_AIO:
	case REASON_DIRTY_PAGES ... REASON_IO:
		return WAIT_CLASS_IO;
	case REASON_ACCEPT ... REASON_UDP:
	case REASON_PACKET ... REASON_TUN:
	case REASON_NFS ... REASON_NETFS:
		return WAIT_CLASS_NETWORK;
	case REASON_PIPE_READ ... REASON_MSGSND:
	case REASON_UNIX ... REASON_NETLINK:
	case REASON_FUSE:
	case REASON_FUSE_SERVER:
		return WAIT_CLASS_IPC;
	case REASON_EPOLL ... REASON_IO_URING:
	case REASON_INOTIFY:
	case REASON_FANOTIFY:
		return WAIT_CLASS_EVENTS;
	case REASON_SLEEP ... REASON_KERNEL_TIMER:
		return WAIT_CLASS_SLEEP;
	case REASON_SWAP_IN ... REASON_MEMORY_HIGH:
		return WAIT_CLASS_MEMORY;
	default:
		return WAIT_CLASS_OTHER;
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOLDER_DESCRIPTORS_H
#define STACKD_DAEMON_HOLDER_DESCRIPTORS_H

/*
 * Which processes have which pipes, sockets and other files open: one pass over /proc/PID/fd of all
 * processes, which all look-ups of a call share. One thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum descriptor_kind {
	DESCRIPTOR_PIPE,    /* the key is the inode */
	DESCRIPTOR_SOCKET,  /* the key is the inode */
	DESCRIPTOR_EVENTFD, /* the key is the kernel's number of the eventfd */
	DESCRIPTOR_FILE, /* the key is descriptor_name_key() of the path: it may be another file */
};

struct descriptor {
	uint64_t key;
	enum descriptor_kind kind;
	int32_t pid;
	int32_t fd;
};

/* The descriptors of all processes, sorted by kind, key, pid and fd. */
struct descriptors {
	struct descriptor *v;
	size_t n, capacity;
	bool is_read;  /* the pass was made */
	bool is_whole; /* the pass saw everything */
};

/* Parses the target of a link in /proc/PID/fd. Returns false if it is of none of these kinds. */
bool descriptor_parse(const char *target, enum descriptor_kind *kind_out, uint64_t *key_out);

/* Returns the key of a file with this path: a hash of the last part of the path. */
uint64_t descriptor_name_key(const char *path);

/* FDINFO_BYTES: as much of what /proc says about a descriptor is read. */
enum { FDINFO_BYTES = 1024 };

/*
 * Reads a number from the text of a fdinfo file: that after a name with a colon, such as
 * "eventfd-id:". Returns false if the text has no such line.
 */
bool descriptor_number(const char *text, const char *name, int base, uint64_t *out);

/* Reads the fdinfo file of a descriptor into a text. Returns 0 or a negative errno. */
int descriptor_info_read(const struct descriptor *descriptor, char *text, size_t size);

/*
 * Returns the descriptors with a key, *n_out of them; makes the pass over all processes if it has
 * not been made, which ends at deadline_ns of CLOCK_MONOTONIC.
 */
const struct descriptor *descriptors_find(struct descriptors *all, int64_t deadline_ns,
					  enum descriptor_kind kind, uint64_t key, size_t *n_out);
void descriptors_fini(struct descriptors *all);

#endif

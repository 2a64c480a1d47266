/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_FILE_LOCK_H
#define STACKD_DAEMON_HOST_FILE_LOCK_H

/* Reads lines of /proc/locks, and those of the same form in /proc/PID/fdinfo. Pure; any thread. */

#include <stdbool.h>
#include <stdint.h>

struct file_lock {
	bool is_waiting; /* the lock was asked for, and others hold it */
	bool is_lease;	 /* those that open the file wait until it is given back */
	bool is_flock;	 /* by flock(); else by fcntl() */
	bool is_of_file; /* of an open file (OFD lock): it belongs to no process */
	bool is_exclusive;
	int32_t pid; /* the process that asked for it; -1: none, or one that this host cannot see */
	uint32_t major, minor;
	uint64_t inode;
	uint64_t start, end; /* the first and the last byte of the locked range */
};

/*
 * Parses a line that ends with a newline or NUL, such as
 * "1: -> FLOCK  ADVISORY  WRITE 1300 08:01:12345 0 EOF". Returns false if it is another kind of
 * line, or is about a lease.
 */
bool file_lock_parse(const char *line, struct file_lock *out);

/* Parses a line about a lease in the same way. */
bool file_lease_parse(const char *line, struct file_lock *out);

/*
 * Returns the process that waits for a lease to be given back, of which such a line says no more:
 * it is the lease in the last line before it that is about one. 0: it is another kind of line.
 */
int32_t file_lease_waiter(const char *line);

/*
 * True if `held` keeps `wanted` from being granted: same file, same kind, ranges that overlap, and
 * not two locks by fcntl() of one process.
 */
bool file_lock_blocks(const struct file_lock *held, const struct file_lock *wanted);

#endif

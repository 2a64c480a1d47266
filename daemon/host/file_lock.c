/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/file_lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Skips "lock:" of fdinfo, the number of the lock, and the arrow of one that waits. */
static const char *head_skip(const char *line, bool *is_waiting_out)
{
	const char *at = line + strspn(line, " \t");

	if (strncmp(at, "lock:", 5) == 0)
		at += 5 + strspn(at + 5, " \t");
	at += strspn(at, "0123456789");
	if (*at != ':')
		return NULL;
	at += 1 + strspn(at + 1, " \t");
	*is_waiting_out = strncmp(at, "->", 2) == 0;
	return *is_waiting_out ? at + 2 : at;
}

bool file_lock_parse(const char *line, struct file_lock *out)
{
	char kind[16], mode[16], type[16], end[24];
	struct file_lock lock = {};
	const char *at = head_skip(line, &lock.is_waiting);

	if (!at || sscanf(at,
			  " %15s %15s %15s %" SCNd32 " %" SCNx32 ":%" SCNx32 ":%" SCNu64 " %" SCNu64
			  " %23s",
			  kind, mode, type, &lock.pid, &lock.major, &lock.minor, &lock.inode,
			  &lock.start, end) != 9)
		return false;
	lock.is_flock = strcmp(kind, "FLOCK") == 0;
	lock.is_of_file = strcmp(kind, "OFDLCK") == 0;
	if (!lock.is_flock && !lock.is_of_file && strcmp(kind, "POSIX") != 0)
		return false;
	lock.is_exclusive = strcmp(type, "WRITE") == 0;
	if (!lock.is_exclusive && strcmp(type, "READ") != 0)
		return false;
	if (strcmp(end, "EOF") == 0)
		lock.end = UINT64_MAX;
	else if (sscanf(end, "%" SCNu64, &lock.end) != 1)
		return false;
	*out = lock;
	return true;
}

bool file_lock_blocks(const struct file_lock *held, const struct file_lock *wanted)
{
	const bool is_of_process = !held->is_flock && !held->is_of_file && !wanted->is_of_file;

	/* A process may change a lock of its own, as when it turns one for reading into another. */
	if (is_of_process && held->pid > 0 && held->pid == wanted->pid)
		return false;
	return !held->is_waiting && held->inode == wanted->inode && held->major == wanted->major &&
	       held->minor == wanted->minor && held->is_flock == wanted->is_flock &&
	       (held->is_exclusive || wanted->is_exclusive) && held->start <= wanted->end &&
	       wanted->start <= held->end;
}

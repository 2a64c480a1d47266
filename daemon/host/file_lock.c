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

enum { WORD = 16 };

/* Reads what lines about locks and leases have in common. Returns false for other lines. */
static bool line_parse(const char *line, char kind[static WORD], char type[static WORD],
		       struct file_lock *out)
{
	const char *at = head_skip(line, &out->is_waiting);
	char mode[WORD], end[24];

	if (!at || sscanf(at,
			  " %15s %15s %15s %" SCNd32 " %" SCNx32 ":%" SCNx32 ":%" SCNu64 " %" SCNu64
			  " %23s",
			  kind, mode, type, &out->pid, &out->major, &out->minor, &out->inode,
			  &out->start, end) != 9)
		return false;
	if (strcmp(end, "EOF") == 0)
		out->end = UINT64_MAX;
	else if (sscanf(end, "%" SCNu64, &out->end) != 1)
		return false;
	return true;
}

bool file_lock_parse(const char *line, struct file_lock *out)
{
	struct file_lock lock = {};
	char kind[WORD], type[WORD];

	if (!line_parse(line, kind, type, &lock))
		return false;
	lock.is_flock = strcmp(kind, "FLOCK") == 0;
	lock.is_of_file = strcmp(kind, "OFDLCK") == 0;
	if (!lock.is_flock && !lock.is_of_file && strcmp(kind, "POSIX") != 0)
		return false;
	lock.is_exclusive = strcmp(type, "WRITE") == 0;
	if (!lock.is_exclusive && strcmp(type, "READ") != 0)
		return false;
	*out = lock;
	return true;
}

static bool is_lease(const char *kind)
{
	return strcmp(kind, "LEASE") == 0 || strcmp(kind, "DELEG") == 0;
}

bool file_lease_parse(const char *line, struct file_lock *out)
{
	struct file_lock lock = { .is_lease = true };
	char kind[WORD], type[WORD];

	if (!line_parse(line, kind, type, &lock) || !is_lease(kind))
		return false;
	*out = lock;
	return true;
}

int32_t file_lease_waiter(const char *line)
{
	char kind[WORD], mode[WORD];
	bool is_waiting;
	const char *at = head_skip(line, &is_waiting);
	int32_t pid;

	return at && is_waiting && sscanf(at, " %15s %15s %*s %" SCNd32, kind, mode, &pid) == 3 &&
			       is_lease(kind) && strcmp(mode, "BREAKER") == 0
		       ? pid
		       : 0;
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

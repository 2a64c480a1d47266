/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/own_process.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static const char deleted[] = " (deleted)";

/* Returns the length of a path without what the kernel adds if the file is gone. */
static size_t path_length(const char *path)
{
	size_t n = strlen(path), less = strlen(deleted);

	return n > less && strcmp(path + n - less, deleted) == 0 ? n - less : n;
}

bool own_process_has_name(const char *comm)
{
	return strcmp(comm, "stackd") == 0 || strncmp(comm, "stackd-", strlen("stackd-")) == 0;
}

/* True for the cgroup of the packaged unit, and for those below it, which only root can enter. */
static bool is_own_cgroup(const char *cgroup)
{
	static const char unit[] = "/system.slice/stackd.service";
	const size_t n = sizeof(unit) - 1;

	return cgroup && strncmp(cgroup, unit, n) == 0 && (cgroup[n] == '\0' || cgroup[n] == '/');
}

bool own_process_matches(const char *own, const char *comm, const char *exe)
{
	size_t n = path_length(own);

	return own_process_has_name(comm) && exe && n > 0 && path_length(exe) == n &&
	       memcmp(own, exe, n) == 0;
}

static char own_path[4096];

static void own_path_read(void)
{
	ssize_t n = readlink("/proc/self/exe", own_path, sizeof(own_path) - 1);

	own_path[n > 0 ? n : 0] = '\0';
}

bool own_process_is(const char *comm, const char *exe, const char *cgroup)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (is_own_cgroup(cgroup) && own_process_has_name(comm))
		return true;
	pthread_once(&once, own_path_read);
	return own_process_matches(own_path, comm, exe);
}

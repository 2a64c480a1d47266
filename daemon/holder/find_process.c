/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/base.h"
#include "daemon/holder/internal.h"
#include "daemon/host/cgroup.h"
#include "daemon/host/procfs.h"

/* CHILDREN_BYTES: as much of the list of a thread's children is read. */
enum { CHILDREN_BYTES = 1 << 16 };

/* Adds the child with this pid, or if `pid` is not positive, all children of the process. */
static void children_add(const struct task *task, int32_t pid, struct holder_answer *out)
{
	struct dirent *entry;
	int32_t parent, child;
	uint64_t ticks;
	DIR *directory = proc_directory_open("/proc");
	char name[300];

	while (directory && (entry = proc_number_next(directory))) {
		if (task_is_late(task))
			out->unknown = holder_took_too_long;
		if (out->unknown)
			break;
		snprintf(name, sizeof(name), "%s/stat", entry->d_name);
		child = (int32_t)strtol(entry->d_name, NULL, 10);
		if ((pid > 0 && child != pid) ||
		    proc_stat_read(dirfd(directory), name, &parent, &ticks) ||
		    parent != task->question->pid)
			continue;
		holder_add(out, child, 0);
	}
	if (directory)
		closedir(directory);
}

/*
 * A process in a pid namespace of its own names its children by other numbers: then all children
 * are given.
 */
void holder_find_child(struct task *task, struct holder_answer *out)
{
	const uint64_t *args = task->call.args;
	int32_t pid = 0;

	if (task->call.number == SYS_wait4)
		pid = (int32_t)args[0];
	else if (task->call.number == SYS_waitid && args[0] == P_PID)
		pid = (int32_t)args[1];
	else if (task->call.number != SYS_waitid) {
		out->unknown = holder_went_on;
		return;
	}
	children_add(task, task_is_in_own_namespace(task) ? 0 : pid, out);
	if (!out->n && !out->unknown)
		out->unknown = holder_went_on;
}

/*
 * The thread runs on when its child does: it is the last one that this thread made, and the kernel
 * lists the children of a thread by age.
 */
void holder_find_vfork_child(struct task *task, struct holder_answer *out)
{
	_cleanup_(freep) char *text = malloc(CHILDREN_BYTES);
	int32_t child = 0;
	char *at, *end;

	if (!text || proc_text_read(task->dir_fd, "children", text, CHILDREN_BYTES)) {
		out->unknown = "the kernel does not list the children of threads";
		return;
	}
	if (strlen(text) + 1 == CHILDREN_BYTES) {
		out->unknown = "the thread has too many children";
		return;
	}
	for (at = text;; at = end) {
		long pid = strtol(at, &end, 10);

		if (end == at)
			break;
		child = (int32_t)pid;
	}
	if (child)
		holder_add(out, child, 0);
	else
		out->unknown = holder_went_on;
}

/* Reads a number of the status file of a thread, such as that after "TracerPid:". */
static int32_t status_number(int dir_fd, const char *path, const char *name)
{
	char text[4096];
	uint64_t number;

	if (proc_text_read(dir_fd, path, text, sizeof(text)) ||
	    !descriptor_number(text, name, 10, &number))
		return 0;
	return (int32_t)number;
}

void holder_find_tracer(struct task *task, struct holder_answer *out)
{
	int32_t tracer = status_number(task->dir_fd, "status", "TracerPid:"), pid;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/status", tracer);
	pid = tracer ? status_number(AT_FDCWD, path, "Tgid:") : 0;
	if (pid)
		holder_add(out, pid, tracer);
	else
		out->unknown = holder_went_on;
}

void holder_find_stopped(struct task *task, struct holder_answer *out)
{
	out->unknown = "the kernel does not record who sent the signal";
}

/* True if the file of a control group begins with this text. */
static bool cgroup_says(const char *mount, const char *group, const char *file, const char *text)
{
	char path[CGROUP_PATH_MAX], found[64];

	return snprintf(path, sizeof(path), "%s%s/%s", mount, group, file) < (int)sizeof(path) &&
	       !proc_text_read(AT_FDCWD, path, found, sizeof(found)) &&
	       strncmp(found, text, strlen(text)) == 0;
}

/*
 * Names the first group, from the thread's own up, whose file says that it was frozen. Cuts `group`
 * off there.
 */
static bool frozen_name(const char *mount, char *group, const char *file, const char *text,
			struct holder_answer *out)
{
	for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
		*end = '\0';
		if (!group[0])
			return false;
		if (cgroup_says(mount, group, file, text))
			return asprintf(&out->object, "cgroup %s", group) >= 0;
	}
	return false;
}

/* Finds where the freezer of cgroup v1 is mounted, and the thread's group there. */
static int freezer_find(const struct task *task, char *mount, size_t size, char *group)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/mounts", "re");
	char line[1024], at[512], type[64], options[256], *text;
	bool is_mounted = false;

	while (f && !is_mounted && fgets(line, sizeof(line), f)) {
		is_mounted = sscanf(line, "%*s %511s %63s %255s", at, type, options) == 3 &&
			     strcmp(type, "cgroup") == 0 && strstr(options, "freezer");
		snprintf(mount, size, "%s", at);
	}
	if (!is_mounted || proc_text_read(task->dir_fd, "cgroup", group, CGROUP_PATH_MAX))
		return -ENOENT;
	text = strstr(group, ":freezer:");
	if (!text)
		return -ENOENT;
	text += strlen(":freezer:");
	text[strcspn(text, "\n")] = '\0';
	memmove(group, text, strlen(text) + 1);
	return 0;
}

void holder_find_frozen(struct task *task, struct holder_answer *out)
{
	_cleanup_(freep) char *group = NULL;
	char mount[CGROUP_PATH_MAX], old_group[CGROUP_PATH_MAX];
	bool has_group, has_old;

	has_group =
		!cgroup_mount(mount, sizeof(mount)) && !procfs_read_cgroup(task->dir_fd, &group);
	if (has_group && frozen_name(mount, group, "cgroup.freeze", "1", out))
		return;
	has_old = !freezer_find(task, mount, sizeof(mount), old_group);
	if (has_old && frozen_name(mount, old_group, "freezer.self_freezing", "1", out))
		return;
	out->unknown = has_group || has_old ? "none of its control groups is frozen now"
					    : "its control groups cannot be read";
}

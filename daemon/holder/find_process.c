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

/* The children that a thread waits for; all if each member is 0. */
struct wanted {
	int32_t pid, group; /* numbers of the thread's own pid namespace */
	int32_t host_pid;
};

/*
 * Returns in how many pid namespaces a thread is, counted from the initial one. It is in that one
 * if the kernel has no others, and says nothing.
 */
static size_t namespaces_of(const struct task *task)
{
	int32_t ids[NAMESPACES_MAX];
	size_t n = status_numbers(task->dir_fd, "status", "NSpid:", ids);

	return n ? n : 1;
}

/* True if a child is one of those that are waited for. `level` is namespaces_of() the thread. */
static bool is_wanted(const struct wanted *wanted, const char *pid_text, size_t level)
{
	const int32_t pid = (int32_t)strtol(pid_text, NULL, 10);
	const char *name = wanted->pid ? "NSpid:" : "NSpgid:";
	int32_t ids[NAMESPACES_MAX];
	char path[300];

	if (wanted->host_pid)
		return pid == wanted->host_pid;
	if (!wanted->pid && !wanted->group)
		return true;
	if (wanted->pid && level == 1)
		return pid == wanted->pid;
	snprintf(path, sizeof(path), "/proc/%s/status", pid_text);
	return status_numbers(AT_FDCWD, path, name, ids) >= level &&
	       ids[level - 1] == (wanted->pid ? wanted->pid : wanted->group);
}

/* Adds the children of the process that the thread waits for. */
static void children_add(const struct task *task, const struct wanted *wanted,
			 struct holder_answer *out)
{
	const size_t level = namespaces_of(task);
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
		if (proc_stat_read(dirfd(directory), name, &parent, &ticks) ||
		    parent != task->question->pid || !is_wanted(wanted, entry->d_name, level))
			continue;
		holder_add(out, child, 0);
	}
	if (directory)
		closedir(directory);
}

/* Returns the process group of the thread, by the number that its own pid namespace has for it. */
static int32_t own_group(const struct task *task)
{
	int32_t ids[NAMESPACES_MAX];
	size_t n = status_numbers(task->dir_fd, "status", "NSpgid:", ids);

	return n ? ids[n - 1] : 0;
}

/* Returns the process of a pidfd of the thread, by its number in the initial pid namespace. */
static int32_t pidfd_process(const struct task *task, int fd)
{
	uint64_t pid;

	return task_fdinfo_number(task, fd, "Pid:", &pid) && pid <= INT32_MAX ? (int32_t)pid : 0;
}

/*
 * Sets *out to the children that the system call waits for: wait(2) has the forms. Returns false if
 * these are not known.
 */
static bool wanted_read(const struct task *task, struct wanted *out)
{
	const int32_t number = (int32_t)task->call.args[0], id = (int32_t)task->call.args[1];

	*out = (struct wanted){ 0 };
	if (number == INT32_MIN)
		return false;
	if (task->call.number == SYS_wait4) {
		out->pid = number > 0 ? number : 0;
		out->group = number < -1 ? -number : number == 0 ? own_group(task) : 0;
		return number || out->group;
	}
	switch (number) {
	case P_ALL:
		return true;
	case P_PID:
		out->pid = id;
		return id > 0;
	case P_PGID:
		out->group = id ? id : own_group(task);
		return out->group > 0;
	case P_PIDFD:
		out->host_pid = pidfd_process(task, id);
		return out->host_pid > 0;
	}
	return false;
}

void holder_find_child(struct task *task, struct holder_answer *out)
{
	struct wanted wanted;

	if (task->call.number != SYS_wait4 && task->call.number != SYS_waitid) {
		out->unknown = holder_went_on;
		return;
	}
	if (!wanted_read(task, &wanted)) {
		out->unknown = "it is not known which child is waited for";
		return;
	}
	children_add(task, &wanted, out);
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

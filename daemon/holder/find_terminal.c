/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits for terminals: the program at the other end of a pseudo-terminal. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/holder/internal.h"

/* PTS_MAJOR: the major number of the terminals in /dev/pts. */
enum { PTS_MAJOR = 136 };

/* One end of a pseudo-terminal. */
struct terminal {
	bool is_master;
	uint64_t number;
	/*
	 * "/dev" of /dev/pts/3, and where it is mounted; a container has a /dev/pts of its own,
	 * whose masters may be open outside
	 */
	char dir[TASK_TARGET_BYTES];
	uint32_t major, minor; /* the file system; 0, 0: not known */
};

/* True if a file is a slave in a /dev/pts, by whatever path it was opened. */
static bool is_slave(const struct statx *file)
{
	return S_ISCHR(file->stx_mode) && file->stx_rdev_major == PTS_MAJOR;
}

/* Cuts `end` off a text. Returns false if the text does not end with it. */
static bool end_cut(char *text, const char *end)
{
	const size_t n = strlen(text), n_end = strlen(end);

	if (n < n_end || strcmp(text + n - n_end, end) != 0)
		return false;
	text[n - n_end] = '\0';
	return true;
}

/* Sets *out to the slave with a path such as /dev/pts/3. Returns false for other paths. */
static bool slave_parse(const char *target, struct terminal *out)
{
	char *name, *end;

	snprintf(out->dir, sizeof(out->dir), "%s", target);
	name = strrchr(out->dir, '/');
	if (!name || name[1] < '0' || name[1] > '9')
		return false;
	out->is_master = false;
	out->number = strtoull(name + 1, &end, 10);
	*name = '\0';
	return !*end && end_cut(out->dir, "/pts");
}

/*
 * Sets *out to the master that a descriptor is, by its path and the text of its fdinfo. Returns
 * false if it is none.
 */
static bool master_parse(const char *target, const char *info, struct terminal *out)
{
	snprintf(out->dir, sizeof(out->dir), "%s", target);
	out->is_master = true;
	if (!end_cut(out->dir, "/ptmx") || !descriptor_number(info, "tty-index:", 10, &out->number))
		return false;
	end_cut(out->dir, "/pts");
	return true;
}

/* True if both processes see the same files, and so the same terminals. */
static bool has_same_mounts(const struct task *task, int32_t pid)
{
	char path[64], own[64] = "", other[64] = "";

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/ns/mnt", pid);
	return readlinkat(task->dir_fd, "ns/mnt", own, sizeof(own) - 1) > 0 &&
	       readlink(path, other, sizeof(other) - 1) > 0 && strcmp(own, other) == 0;
}

/*
 * True if both ends are of one /dev/pts. A master that was opened by /dev/ptmx does not say of
 * which one it is; then both processes have to call it by the same path.
 */
static bool is_same_place(const struct task *task, const struct terminal *terminal,
			  const struct terminal *other, int32_t pid)
{
	if (terminal->major == other->major && terminal->minor == other->minor)
		return terminal->major || terminal->minor;
	return strcmp(other->dir, terminal->dir) == 0 && has_same_mounts(task, pid);
}

static bool is_other_end(const struct task *task, const struct descriptor *descriptor,
			 const void *what)
{
	const struct terminal *terminal = what;
	char path[64], target[TASK_TARGET_BYTES], info[FDINFO_BYTES];
	struct terminal other;
	struct statx file;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/fd/%" PRId32, descriptor->pid,
		 descriptor->fd);
	n = readlink(path, target, sizeof(target) - 1);
	target[n < 0 ? 0 : n] = '\0';
	if (terminal->is_master ? !slave_parse(target, &other)
				: descriptor_info_read(descriptor, info, sizeof(info)) ||
					  !master_parse(target, info, &other))
		return false;
	if (other.number != terminal->number ||
	    !descriptor_file_read(descriptor->pid, descriptor->fd, &file))
		return false;
	other.major = file.stx_dev_major;
	other.minor = file.stx_dev_minor;
	return is_same_place(task, terminal, &other, descriptor->pid);
}

static void ends_add(struct task *task, const struct terminal *terminal, struct holder_answer *out)
{
	char name[32];

	snprintf(name, sizeof(name), "%" PRIu64, terminal->number);
	holder_add_ends(task, DESCRIPTOR_FILE,
			descriptor_name_key(terminal->is_master ? name : "ptmx"), is_other_end,
			terminal, out);
}

/* Sets *out to the terminal that a process calls /dev/tty. Returns false if it is none in /dev/pts.
 */
static bool controlling_read(const struct task *task, const char *target, struct terminal *out)
{
	char text[1024], *at;
	unsigned int device;

	snprintf(out->dir, sizeof(out->dir), "%s", target);
	out->is_master = false;
	if (!end_cut(out->dir, "/tty") || proc_text_read(task->dir_fd, "stat", text, sizeof(text)))
		return false;
	at = strrchr(text, ')');
	if (!at || sscanf(at + 1, " %*c %*d %*d %*d %u", &device) != 1 ||
	    (device >> 8 & 0xfff) != PTS_MAJOR)
		return false;
	out->number = (device & 0xff) | (device >> 12 & 0xfff00);
	return true;
}

/* Sets *out to the terminal that a descriptor is. Returns false if it is none in a /dev/pts. */
static bool terminal_read(const struct task *task, const char *target, const char *info,
			  const struct statx *file, struct terminal *out)
{
	*out = (struct terminal){ 0 };
	if (is_slave(file)) {
		if (!slave_parse(target, out))
			out->dir[0] = '\0'; /* such as /dev/console of a container */
		out->number = file->stx_rdev_minor;
	} else if (!master_parse(target, info, out)) {
		return controlling_read(task, target, out);
	}
	out->major = file->stx_dev_major;
	out->minor = file->stx_dev_minor;
	return true;
}

static char *terminal_name(const struct terminal *terminal, const char *target)
{
	char *name = NULL;
	int r = terminal->dir[0] ? asprintf(&name, "terminal %s/pts/%" PRIu64 "%s", terminal->dir,
					    terminal->number, terminal->is_master ? ", master" : "")
				 : asprintf(&name, "terminal %s", target);

	return r < 0 ? NULL : name;
}

void holder_find_terminal(struct task *task, struct holder_answer *out)
{
	const bool writes = task->question->reason == REASON_TTY_WRITE;
	char target[TASK_TARGET_BYTES], info[FDINFO_BYTES], path[64];
	struct terminal terminal;
	struct statx file;
	int fd = task_descriptor(task, writes, target, sizeof(target));

	snprintf(path, sizeof(path), "fdinfo/%d", fd);
	if (fd < 0 || target[0] != '/' || proc_text_read(task->dir_fd, path, info, sizeof(info)) ||
	    !descriptor_file_read(task->question->pid, fd, &file) || !S_ISCHR(file.stx_mode)) {
		out->unknown = holder_went_on;
		return;
	}
	if (terminal_read(task, target, info, &file, &terminal)) {
		out->object = terminal_name(&terminal, target);
		ends_add(task, &terminal, out);
		return;
	}
	if (asprintf(&out->object, "terminal %s", target) < 0)
		out->object = NULL;
	out->unknown = "at its other end is a device and no program";
}

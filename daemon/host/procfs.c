/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "common/base.h"

#define PF_KTHREAD   0x00200000 /* flag of kernel threads in field 9 of /proc/PID/stat */
#define CGROUP_BYTES 8192	/* room for a path of PATH_MAX bytes and the lines of cgroup v1 */
#define MAPS_BUFFER  (64 * 1024)

static uint64_t tick_ns(void)
{
	long hz = sysconf(_SC_CLK_TCK);

	return (uint64_t)(NS_PER_S / (hz > 0 ? hz : 100));
}

size_t procfs_own_rss(void)
{
	_cleanup_(closep) int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[128] = "";
	unsigned long resident;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ||
	    sscanf(text, "%*u %lu", &resident) != 1)
		return 0;
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

uint64_t procfs_ticks(uint64_t start_boot_ns)
{
	return start_boot_ns / tick_ns();
}

uint64_t procfs_ticks_ns(uint64_t ticks)
{
	return ticks * tick_ns();
}

/* Reads the beginning of a file, `size` - 1 bytes at most, into `buffer`, and adds a NUL. */
static int read_text(int dir_fd, const char *name, char *buffer, size_t size)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got;
	int r;

	if (fd < 0)
		return -errno;
	do {
		got = read(fd, buffer + n, size - 1 - n);
		if (got > 0)
			n += (size_t)got;
	} while (got > 0 && n < size - 1);
	r = got < 0 ? -errno : 0;
	close(fd);
	buffer[n] = '\0';
	return r;
}

/*
 * Parses the text of /proc/PID/stat: "PID (comm) S ...". comm may contain parentheses, so it ends
 * at the last ")" in the text.
 */
static int stat_parse(char *text, struct procfs_stat *out)
{
	char *open = strchr(text, '('), *close = strrchr(text, ')'), *field, *rest = NULL;
	struct procfs_stat stat = { 0 };
	int index = 3;

	if (!open || !close || close < open)
		return -EBADMSG;
	*close = '\0';
	snprintf(stat.comm, sizeof(stat.comm), "%.15s", open + 1);
	for (field = strtok_r(close + 1, " ", &rest); field; field = strtok_r(NULL, " ", &rest)) {
		if (index == 9)
			stat.is_kernel = strtoul(field, NULL, 10) & PF_KTHREAD;
		if (index == 22) {
			stat.start_ticks = strtoull(field, NULL, 10);
			*out = stat;
			return 0;
		}
		index++;
	}
	return -EBADMSG;
}

int procfs_open(int32_t pid, struct procfs_stat *stat_out)
{
	char path[32], stat[48], text[1024];
	int fd, r;

	snprintf(path, sizeof(path), "/proc/%" PRId32, pid);
	/* That of the process adds up the times of its threads, of which there may be thousands. */
	snprintf(stat, sizeof(stat), "task/%" PRId32 "/stat", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	r = read_text(fd, stat, text, sizeof(text));
	if (r == -ENOENT)
		r = -ESRCH;
	if (r == 0)
		r = stat_parse(text, stat_out);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}

bool procfs_has_thread(uint32_t tgid, uint32_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u", tgid, tid);
	return access(path, F_OK) == 0;
}

/*
 * Reads a symbolic link, without the " (deleted)" that /proc appends to the path of a deleted file.
 */
static int link_read(int dir_fd, const char *name, char path[static PATH_MAX])
{
	static const char deleted[] = " (deleted)";
	ssize_t n = readlinkat(dir_fd, name, path, PATH_MAX - 1);
	size_t size;

	if (n < 0)
		return -errno;
	size = (size_t)n;
	path[size] = '\0';
	if (size >= sizeof(deleted) && !strcmp(path + size - sizeof(deleted) + 1, deleted))
		path[size - sizeof(deleted) + 1] = '\0';
	return 0;
}

int procfs_read_fd(int fd, char *path)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return link_read(AT_FDCWD, link, path);
}

int procfs_read_exe(int dir_fd, struct procfs_exe *exe_out)
{
	struct procfs_exe exe = { 0 };
	struct statx st;
	char path[PATH_MAX];
	int r = link_read(dir_fd, "exe", path);

	if (r)
		return r;
	/*
	 * AT_STATX_DONT_SYNC: the attributes that the kernel has in memory are sufficient; a
	 * request to a remote file system may hang.
	 */
	if (!statx(dir_fd, "exe", AT_STATX_DONT_SYNC, STATX_INO, &st)) {
		exe.dev = makedev(st.stx_dev_major, st.stx_dev_minor);
		exe.inode = st.stx_ino;
	}
	exe.path = strdup(path);
	if (!exe.path)
		return -ENOMEM;
	*exe_out = exe;
	return 0;
}

int procfs_read_cgroup(int dir_fd, char **cgroup_out)
{
	_cleanup_(freep) char *text = malloc(CGROUP_BYTES);
	char *line, *rest = NULL, *copy;
	int r;

	if (!text)
		return -ENOMEM;
	r = read_text(dir_fd, "cgroup", text, CGROUP_BYTES);
	if (r < 0)
		return r;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (strncmp(line, "0::/", 4))
			continue;
		copy = strdup(line + 3);
		if (!copy)
			return -ENOMEM;
		*cgroup_out = copy;
		return 0;
	}
	return -ENOENT;
}

int procfs_read_maps(int dir_fd, struct proc_maps *out)
{
	int fd = openat(dir_fd, "maps", O_RDONLY | O_CLOEXEC);
	_cleanup_(freep) char *buffer = NULL;
	_cleanup_(fclosep) FILE *in = NULL;

	if (fd < 0)
		return -errno;
	in = fdopen(fd, "re");
	if (!in) {
		close(fd);
		return -ENOMEM;
	}
	buffer = malloc(MAPS_BUFFER);
	if (buffer)
		setvbuf(in, buffer, _IOFBF, MAPS_BUFFER);
	return proc_maps_read(in, out);
}

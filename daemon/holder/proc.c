/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/holder/internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"

int proc_text_read(int dir_fd, const char *name, char *buffer, size_t size)
{
	_cleanup_(closep) int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	while (n + 1 < size && (got = read(fd, buffer + n, size - 1 - n)) != 0) {
		if (got < 0 && errno != EINTR)
			return -errno;
		n += got > 0 ? (size_t)got : 0;
	}
	buffer[n] = '\0';
	return 0;
}

int proc_stat_read(int dir_fd, const char *name, int32_t *parent_out, uint64_t *ticks_out)
{
	char text[1024], *at;
	int r = proc_text_read(dir_fd, name, text, sizeof(text));

	at = r ? NULL : strrchr(text, ')');
	if (!at ||
	    sscanf(at + 1,
		   " %*c %" SCNd32 " %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
		   "%*d %*d %" SCNu64,
		   parent_out, ticks_out) != 2)
		return r ? r : -EINVAL;
	return 0;
}

static bool is_number(const char *text)
{
	return isdigit((unsigned char)text[0]);
}

struct dirent *proc_number_next(DIR *directory)
{
	struct dirent *entry;

	do
		entry = readdir(directory);
	while (entry && !is_number(entry->d_name));
	return entry;
}

DIR *proc_directory_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !directory)
		close(fd);
	return directory;
}

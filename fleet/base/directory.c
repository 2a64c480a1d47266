/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/base/directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base.h"

int directory_make(const char *path)
{
	const char *end = strrchr(path, '/');
	_cleanup_(freep) char *directory = NULL;

	if (!end || end == path)
		return 0;
	directory = strndup(path, (size_t)(end - path));
	if (!directory)
		return -ENOMEM;
	return mkdir(directory, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

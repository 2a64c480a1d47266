/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_INI_H
#define STACKD_DAEMON_CONFIG_INI_H

/*
 * One INI file as systemd's are: in goes a path, out come its assignments in order, by callback.
 * What keys mean is not known here. No state; the caller's thread.
 */

#include <stdbool.h>

struct config_error;

/* Limits of a file: of a line with those it is continued by, and of the whole. */
#define CONFIG_LINE_MAX (16 * 1024)
#define CONFIG_FILE_MAX (1024 * 1024)

/*
 * One "key = value" with what it stands under; line is the first one it is on. The strings are
 * borrowed. Returns 0 to go on; anything else ends the reading and is what it returns.
 */
typedef int (*config_assign_fn)(void *user, const char *path, unsigned int line,
				const char *section, const char *key, const char *value,
				struct config_error *error);

/*
 * Reads path. A missing file is -ENOENT with error filled; syntax is -EINVAL with file and line in
 * error; other negative errno likewise.
 */
int config_file_read(const char *path, config_assign_fn assign, void *user,
		     struct config_error *error);

#endif

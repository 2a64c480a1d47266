/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_INI_H
#define STACKD_DAEMON_CONFIG_INI_H

/*
 * Reads an INI file in the syntax that systemd uses, and calls back for each assignment, in order.
 * It does not know which sections and keys exist. No state; the caller's thread.
 */

#include <stdbool.h>

struct config_error;

/* The maximum bytes of a line, together with the lines that continue it, and of a file. */
#define CONFIG_LINE_MAX (16 * 1024)
#define CONFIG_FILE_MAX (1024 * 1024)

/*
 * Handles one assignment "key = value" of a section. line is the number of its first line. The
 * strings are borrowed. Returns 0; any other value ends config_file_read(), which then returns it.
 */
typedef int (*config_assign_fn)(void *user, const char *path, unsigned int line,
				const char *section, const char *key, const char *value,
				struct config_error *error);

/*
 * Reads the file at path. Returns 0; -ENOENT for a missing file, -EINVAL for a syntax error, whose
 * line error->text names, or another negative errno. error->text is set whenever it is not 0.
 */
int config_file_read(const char *path, config_assign_fn assign, void *user,
		     struct config_error *error);

#endif

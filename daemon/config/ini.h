/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_INI_H
#define STACKD_DAEMON_CONFIG_INI_H

/*
 * Reads an INI file in the syntax that systemd uses, and calls a function for each assignment, in
 * order. It does not know which sections and keys exist. No state; the callback runs in the calling
 * thread.
 */

struct config_error;

/*
 * Limits in bytes: CONFIG_FILE_MAX for a whole file, CONFIG_LINE_MAX for one line together with the
 * lines that continue it.
 */
#define CONFIG_LINE_MAX (16 * 1024)
#define CONFIG_FILE_MAX (1024 * 1024)

/*
 * Handles one assignment "key = value" in a section. `line` is the number of the first line of the
 * assignment. The strings are valid only during the call. Returns 0 to continue; any other value
 * ends config_file_read(), which returns it.
 */
typedef int (*config_assign_fn)(void *user, const char *path, unsigned int line,
				const char *section, const char *key, const char *value,
				struct config_error *error);

/*
 * Reads the file with the path `path`. Returns 0; -ENOENT if the file is missing; -EINVAL for a
 * syntax error; or another negative errno. If it does not return 0, it sets error->text, which
 * names the line of a syntax error.
 */
int config_file_read(const char *path, config_assign_fn assign, void *user,
		     struct config_error *error);

#endif

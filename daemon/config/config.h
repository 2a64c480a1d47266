/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_CONFIG_H
#define STACKD_DAEMON_CONFIG_CONFIG_H

/*
 * The settings: in come INI files and -o section.key=value, out comes one struct with every
 * value checked. Owned by main; read-only once loaded, so any thread may read it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct config_origin;

#define CONFIG_MEMBER_BOOL     bool
#define CONFIG_MEMBER_COUNT    uint64_t
#define CONFIG_MEMBER_SIZE     uint64_t /* bytes */
#define CONFIG_MEMBER_DURATION int64_t	/* ns */
#define CONFIG_MEMBER_PATH     char *
#define CONFIG_MEMBER_NAME     char *
#define CONFIG_MEMBER_WORD     char *
#define CONFIG_MEMBER_LIST     char ** /* NULL-ended */

struct config {
	/* One member for each setting, by its type. */
#define SECTION(...)
#define SETTING(section, key, type, range, fallback, member, ...) CONFIG_MEMBER_##type member;
#include "daemon/config/settings.def"

	struct config_origin *origins; /* where each value came from, for the dump */
};

struct config_error {
	char text[512]; /* "FILE:LINE: section.key: what is wrong, what is allowed" */
};

/* Where files are looked for; NULL: nowhere. */
struct config_paths {
	const char *vendor_dir; /* *.conf in it, by name */
	const char *file;
	const char *dropin_dir; /* likewise, after file */
	bool is_file_needed;	/* whether it is an error when file is missing */
};

/*
 * Loads defaults, then the vendor's, then FILE and FILE.d/ (path NULL: the built-in paths; a
 * missing default file is fine, a missing named one is an error), then n_overrides strings
 * "section.key=value". Returns 0, or a negative errno with error filled. On success *config_out
 * is owned by the caller.
 */
int config_load(const char *path, char *const *overrides, size_t n_overrides,
		struct config **config_out, struct config_error *error);

/* The same with all paths given. */
int config_load_from(const struct config_paths *paths, char *const *overrides, size_t n_overrides,
		     struct config **config_out, struct config_error *error);

/* Prints every key with its value and, as a comment, where it came from: a file that loads. */
void config_dump(const struct config *config, FILE *out);

struct config *config_free(struct config *config);
void config_freep(struct config **config);

#endif

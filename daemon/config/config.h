/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_CONFIG_H
#define STACKD_DAEMON_CONFIG_CONFIG_H

/*
 * Reads the settings from INI files and from the options -o section.key=value into one struct, and
 * checks every value. The daemon owns the struct. Any thread may read it: later only
 * config_reload() writes to it, whole numbers that are each written at once.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct config_origin;

/* The type of the member for each type of settings.def. */
#define CONFIG_MEMBER_BOOL     bool
#define CONFIG_MEMBER_COUNT    uint64_t
#define CONFIG_MEMBER_SIZE     uint64_t /* in bytes */
#define CONFIG_MEMBER_DURATION int64_t	/* in nanoseconds */
#define CONFIG_MEMBER_PATH     char *
#define CONFIG_MEMBER_NAME     char *
#define CONFIG_MEMBER_WORD     char *
#define CONFIG_MEMBER_LIST     char ** /* a NULL-ended array of strings */

struct config {
	/* One member for each setting of settings.def. */
#define SECTION(...)
#define SETTING(section, key, type, range, fallback, member, ...) CONFIG_MEMBER_##type member;
#include "daemon/config/settings.def"

	struct config_origin *origins; /* where each value was set, in the order of config_keys */
};

struct config_error {
	char text[512]; /* one line, like "FILE:LINE: [section] key = value: what is allowed" */
};

/* Where settings are read from, in this order. NULL: this one is skipped. */
struct config_paths {
	const char *vendor_dir; /* all its files *.conf, sorted by name */
	const char *file;
	const char *dropin_dir; /* all its files *.conf, sorted by name */
	bool is_file_needed;	/* a missing file is an error; else it is skipped */
};

/*
 * Loads the settings; what is read later overrides what was read before: the defaults, the files of
 * the vendor directory, the file at path and those in path.d/, and n_overrides strings
 * "section.key=value". With a path of NULL, the file and the directory are those in /etc, which may
 * be missing; a file at path must exist. Returns 0 with *config_out owned by the caller, or a
 * negative errno with error->text set.
 */
int config_load(const char *path, char *const *overrides, size_t n_overrides,
		struct config **config_out, struct config_error *error);

/* Loads the settings like config_load(), from the given paths. */
int config_load_from(const struct config_paths *paths, char *const *overrides, size_t n_overrides,
		     struct config **config_out, struct config_error *error);

/*
 * Prints every key with its value and, in a comment, where it was set. The output is itself a valid
 * configuration file.
 */
void config_dump(const struct config *config, FILE *out);

struct config *config_free(struct config *config);
void config_freep(struct config **config);

#endif

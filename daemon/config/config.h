/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_CONFIG_H
#define STACKD_DAEMON_CONFIG_CONFIG_H

/*
 * Reads the settings from INI files and from the options -o section.key=value into one struct, and
 * checks every value. The daemon owns the struct. Any thread may read it. After the start only
 * config_reload() writes to it, and only to integers, each in one atomic step.
 *
 * The source files of this room form layers, listed here from the lowest to the highest; each calls
 * only files of lower layers: ini, keys < tiers < value < config, reload. settings_text.c is a
 * program of its own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/config/tiers.h"

struct config_origin;

/* The C types in which struct config stores the settings, one for each type of settings.def. */
#define CONFIG_MEMBER_BOOL     bool
#define CONFIG_MEMBER_COUNT    uint64_t
#define CONFIG_MEMBER_SIZE     uint64_t /* a size in bytes */
#define CONFIG_MEMBER_DURATION int64_t	/* a time in nanoseconds */
#define CONFIG_MEMBER_PERCENT  uint64_t /* in millionths, so that 1 % is 10,000; 0: no limit */
#define CONFIG_MEMBER_PATH     char *
#define CONFIG_MEMBER_NAME     char *
#define CONFIG_MEMBER_WORD     char *
#define CONFIG_MEMBER_TIERS    struct config_tiers
#define CONFIG_MEMBER_LIST     char ** /* an array of strings that ends with NULL */

struct config {
	/* One member for each setting of settings.def. */
#define SECTION(...)
#define SETTING(section, key, type, range, fallback, member, ...) CONFIG_MEMBER_##type member;
#include "daemon/config/settings.def"

	/* where each value was set; one element for each of config_keys, in the same order */
	struct config_origin *origins;
};

struct config_error {
	/*
	 * the error message in one line, like "FILE:LINE: [section] key = value: what is allowed"
	 */
	char text[512];
};

/* The files from which settings are read, in this order. A path that is NULL is skipped. */
struct config_paths {
	/* directory of the package; its *.conf files are read, sorted by name */
	const char *vendor_dir;
	const char *file;
	/* directory of the administrator; its *.conf files are read, sorted by name */
	const char *dropin_dir;
	/* true: it is an error if `file` is missing; false: a missing file is skipped */
	bool is_file_needed;
};

/*
 * Loads the settings in this order, so that later values override earlier ones: the defaults; the
 * files of the vendor directory; the configuration file; the files of the directory with the same
 * path plus ".d"; the n_overrides strings "section.key=value". `path` is the path of the
 * configuration file, which must then exist. If `path` is NULL, the file and the directory in /etc
 * are used, and either may be missing. Returns 0 with *config_out owned by the caller, or a
 * negative errno with error->text set.
 */
int config_load(const char *path, char *const *overrides, size_t n_overrides,
		struct config **config_out, struct config_error *error);

/* Loads the settings like config_load(), but from the files that `paths` names. */
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

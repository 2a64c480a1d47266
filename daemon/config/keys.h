/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_KEYS_H
#define STACKD_DAEMON_CONFIG_KEYS_H

/*
 * The one table of settings: parser, defaults, dump, stackd.conf and its man page all follow it
 * (a test compares them). Constant data; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum config_type {
	CONFIG_BOOL,	 /* bool */
	CONFIG_COUNT,	 /* uint64_t */
	CONFIG_SIZE,	 /* uint64_t, bytes */
	CONFIG_DURATION, /* int64_t, ns */
	CONFIG_PATH,	 /* char *, absolute; max is the longest in bytes */
	CONFIG_NAME,	 /* char *, of a user or group; max is the longest in bytes */
	CONFIG_WORD,	 /* char *, one of the key's words */
	CONFIG_LIST,	 /* char **, NULL-ended; max is the most members */
};

struct config_key {
	const char *section;
	const char *key;
	enum config_type type;
	uint64_t min;
	uint64_t max;
	bool power_of_two;
	const char *fallback; /* the default, as it would be written in a file */
	const char *help;     /* one line: what for */
	size_t offset;	      /* in struct config */
	const char *words;    /* CONFIG_WORD: those allowed, space between them */
};

extern const struct config_key config_keys[];
extern const size_t config_n_keys;

/* Index of a key, or -1. */
int config_key_find(const char *section, const char *key);

/*
 * Writes what is wrong with a section or key that is not in the table, and what there is:
 * 'unknown key, did you mean "length"? allowed: length min_length keep'.
 */
void config_key_explain(const char *section, const char *key, char *why, size_t size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_KEYS_H
#define STACKD_DAEMON_CONFIG_KEYS_H

/*
 * The table of settings that settings.def makes: the parser, the defaults, the dump, stackd.conf
 * and its man page follow it. Constant data; any thread.
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
	const char *help;     /* what it does, for administrators */
	const char *details;  /* more of the same; "" where the help says all */
	size_t offset;	      /* of its member in struct config */
	const char *words;    /* the allowed values of a CONFIG_WORD, separated by spaces */
	bool is_live;	      /* a reload applies a change; otherwise only a restart does */
};

struct config_section {
	const char *name;
	const char *text; /* what its settings are about, for administrators */
};

extern const struct config_key config_keys[];
extern const size_t config_n_keys;

/* In the order in which the table of keys has them. */
extern const struct config_section config_sections[];
extern const size_t config_n_sections;

/* Index of a key, or -1. */
int config_key_find(const char *section, const char *key);

/*
 * Writes what is wrong with a section or key that is not in the table, and what there is:
 * 'unknown key, did you mean "length"? allowed: length min_length keep'.
 */
void config_key_explain(const char *section, const char *key, char *why, size_t size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_KEYS_H
#define STACKD_DAEMON_CONFIG_KEYS_H

/*
 * The table of all settings of the daemon, made from settings.def, and the description that each
 * setting has. The parser, the defaults, --dump-config, stackd.conf and its man page are made from
 * this table. Constant data; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quantity_syntax;

enum config_type {
	CONFIG_BOOL,	 /* yes or no, stored as bool */
	CONFIG_COUNT,	 /* a whole number from `min` to `max`, stored as uint64_t */
	CONFIG_SIZE,	 /* a number of bytes from `min` to `max`, stored as uint64_t */
	CONFIG_DURATION, /* a number of nanoseconds from `min` to `max`, stored as int64_t */
	/* a share from `min` to `max` millionths, or 0 for "off", stored as uint64_t */
	CONFIG_PERCENT,
	CONFIG_PATH,  /* an absolute path of `min` to `max` bytes, stored as char * */
	CONFIG_NAME,  /* the name of a group, of at most `max` bytes, stored as char * */
	CONFIG_WORD,  /* one of the words in config_key.words, stored as char * */
	CONFIG_TEXT,  /* any text, stored as char * */
	CONFIG_LIST,  /* at most `max` names, stored as char **, an array that ends with NULL */
	CONFIG_TIERS, /* tiers of the store, stored as struct config_tiers, see tiers.h */
};

struct config_key {
	const char *section;
	const char *key;
	enum config_type type;
	uint64_t min; /* min and max: the range of a number, or of the length of a text in bytes */
	uint64_t max;
	bool power_of_two;
	const char *fallback; /* the default value, as it is written in a configuration file */
	const char *help;     /* explains to administrators what the setting does */
	const char *details;  /* further text for administrators, which is printed after `help`;
				 or "" */
	size_t offset;	      /* the offset in struct config of the member that holds the value */
	const char *words;    /* the allowed values of a CONFIG_WORD, separated by spaces */
	/* true if a reload applies a change of the value, false if only a restart does */
	bool is_live;
};

struct config_section {
	const char *name;
	const char *text; /* explains to administrators what the settings of the section are for */
};

extern const struct config_key config_keys[];
extern const size_t config_n_keys;

/* The sections, in the same order as their keys are in config_keys. */
extern const struct config_section config_sections[];
extern const size_t config_n_sections;

/* The syntax of durations, which are in seconds without a unit. */
extern const struct quantity_syntax config_durations;

/* Returns the index of a key in config_keys, or -1 if it does not exist. */
int config_key_find(const char *section, const char *key);

/*
 * Writes to `why` that a section or key is unknown, and which names are allowed. For example:
 * 'unknown key, did you mean "length"? allowed: length min_length keep'.
 */
void config_key_explain(const char *section, const char *key, char *why, size_t size);

#endif

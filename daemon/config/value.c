/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/config/value.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/config/config.h"
#include "daemon/config/keys.h"

#define BLANKS " \t"

/* Lists are broken before this column when printed. */
#define LIST_COLUMN 90

struct unit {
	const char *name;
	uint64_t factor;
};

/* Largest first: values are printed in the largest unit that divides them. */
static const struct unit time_units[] = {
	{ "d", UINT64_C(86400) * 1000000000 },
	{ "h", UINT64_C(3600) * 1000000000 },
	{ "min", UINT64_C(60) * 1000000000 },
	{ "s", 1000000000 },
	{ "ms", 1000000 },
	{ "us", 1000 },
	{ "ns", 1 },
	{ NULL, 0 },
};

static const struct unit size_units[] = {
	{ "G", UINT64_C(1) << 30 },
	{ "M", UINT64_C(1) << 20 },
	{ "K", UINT64_C(1) << 10 },
	{ NULL, 0 },
};

static void *value_at(const struct config_key *key, const struct config *config)
{
	return (char *)(uintptr_t)config + key->offset;
}

/* A run of digits; -EINVAL without one, -ERANGE above what 64 bits hold. */
static int parse_digits(const char **text, uint64_t *out)
{
	const char *p = *text;
	uint64_t n = 0;

	if (!isdigit((unsigned char)*p))
		return -EINVAL;
	for (; isdigit((unsigned char)*p); p++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return -ERANGE;
	*text = p;
	*out = n;
	return 0;
}

static const struct unit *unit_find(const struct unit *units, const char *name, size_t length)
{
	for (; units->name; units++)
		if (strlen(units->name) == length && strncmp(units->name, name, length) == 0)
			return units;
	return NULL;
}

/* Numbers with units, added up: "5s", "1h 30min". One number may be bare: it is times factor. */
static int parse_quantity(const char *text, const struct unit *units, uint64_t factor,
			  uint64_t *out)
{
	const char *p = text;
	bool is_first = true;
	uint64_t sum = 0;

	do {
		const struct unit *unit;
		uint64_t n;
		size_t length;
		int r = parse_digits(&p, &n);

		if (r < 0)
			return r;
		length = strspn(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
		unit = unit_find(units, p, length);
		if (!unit && (length || *p || !is_first))
			return -EINVAL;
		if (__builtin_mul_overflow(n, unit ? unit->factor : factor, &n) ||
		    __builtin_add_overflow(sum, n, &sum))
			return -ERANGE;
		p += length;
		p += strspn(p, BLANKS);
		is_first = false;
	} while (*p);
	*out = sum;
	return 0;
}

static void print_quantity(uint64_t n, const struct unit *units, char *text, size_t size)
{
	const char *name = "";

	for (; n && units->name; units++) {
		if (n % units->factor == 0) {
			n /= units->factor;
			name = units->name;
			break;
		}
	}
	snprintf(text, size, "%" PRIu64 "%s", n, name);
}

static const struct unit *key_units(const struct config_key *key)
{
	static const struct unit none[] = { { NULL, 0 } };

	if (key->type == CONFIG_DURATION)
		return time_units;
	return key->type == CONFIG_SIZE ? size_units : none;
}

static const char *key_expects(const struct config_key *key)
{
	switch (key->type) {
	case CONFIG_DURATION:
		return "must be whole numbers with a unit ns, us, ms, s, min, h or d, like 500ms";
	case CONFIG_SIZE:
		return "must be a whole number of bytes, or one with K, M or G, like 64M";
	default:
		return "must be a whole number";
	}
}

static int parse_number(const struct config_key *key, const char *text, struct config *config,
			char *why, size_t size)
{
	uint64_t n = 0, factor = key->type == CONFIG_DURATION ? (uint64_t)NS_PER_S : 1;
	char range[96];
	int r = parse_quantity(text, key_units(key), factor, &n);

	config_value_range(key, range, sizeof(range));
	if (r == -EINVAL)
		snprintf(why, size, "%s", key_expects(key));
	else if (r == -ERANGE || n < key->min || n > key->max ||
		 (key->power_of_two && (n & (n - 1)) != 0))
		snprintf(why, size, "must be %s", range);
	else {
		/* int64_t where it is a duration: the ranges keep it positive. */
		memcpy(value_at(key, config), &n, sizeof(n));
		return 0;
	}
	return -EINVAL;
}

static int parse_bool(const struct config_key *key, const char *text, struct config *config,
		      char *why, size_t size)
{
	static const char *const words[] = { "no", "yes", "false", "true", "off", "on", "0", "1" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcasecmp(text, words[i]) == 0) {
			*(bool *)value_at(key, config) = i % 2;
			return 0;
		}
	}
	snprintf(why, size, "must be yes or no (also true, false, on, off, 1, 0)");
	return -EINVAL;
}

static int replace_string(const struct config_key *key, const char *text, struct config *config)
{
	char **value = value_at(key, config), *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(*value);
	*value = copy;
	return 0;
}

static int parse_path(const struct config_key *key, const char *text, struct config *config,
		      char *why, size_t size)
{
	if (text[0] != '/')
		snprintf(why, size, "must be an absolute path");
	else if (strlen(text) > key->max)
		snprintf(why, size, "must be at most %" PRIu64 " bytes long", key->max);
	else if (strlen(text) < key->min || text[strlen(text) - 1] == '/')
		snprintf(why, size, "must name a file, not a directory");
	else
		return replace_string(key, text, config);
	return -EINVAL;
}

static bool words_have(const char *words, const char *text)
{
	size_t length = strlen(text);

	while (*words) {
		size_t n = strcspn(words, " ");

		if (n == length && strncmp(words, text, n) == 0)
			return true;
		words += n + (words[n] == ' ');
	}
	return false;
}

static int parse_word(const struct config_key *key, const char *text, struct config *config,
		      char *why, size_t size)
{
	if (words_have(key->words, text))
		return replace_string(key, text, config);
	snprintf(why, size, "must be one of: %s", key->words);
	return -EINVAL;
}

static int parse_name(const struct config_key *key, const char *text, struct config *config,
		      char *why, size_t size)
{
	size_t length = strlen(text);

	if (length > key->max)
		snprintf(why, size, "must be at most %" PRIu64 " bytes long", key->max);
	else if (strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			      "0123456789_.-") != length)
		snprintf(why, size, "must be a name of letters, digits, '_', '-' and '.'");
	else
		return replace_string(key, text, config);
	return -EINVAL;
}

static char **list_free(char **list)
{
	for (size_t i = 0; list && list[i]; i++)
		free(list[i]);
	free(list);
	return NULL;
}

/* The words of text as a NULL-ended list; NULL when out of memory. */
static char **list_split(const char *text)
{
	char **list = calloc(strlen(text) / 2 + 2, sizeof(*list));
	size_t n = 0;

	if (!list)
		return NULL;
	for (text += strspn(text, BLANKS); *text; text += strspn(text, BLANKS)) {
		size_t length = strcspn(text, BLANKS);

		list[n] = strndup(text, length);
		if (!list[n++])
			return list_free(list);
		text += length;
	}
	return list;
}

static int parse_list(const struct config_key *key, const char *text, struct config *config,
		      char *why, size_t size)
{
	char **list = list_split(text), ***value = value_at(key, config);
	bool is_comment = false;
	size_t n;

	if (!list)
		return -ENOMEM;
	for (n = 0; list[n]; n++)
		is_comment |= list[n][0] == '#' || list[n][0] == ';';
	if (n > key->max || is_comment) {
		if (is_comment)
			snprintf(why, size, "a name cannot begin with '#' or ';'");
		else
			snprintf(why, size, "must be at most %" PRIu64 " names, but has %zu",
				 key->max, n);
		list_free(list);
		return -EINVAL;
	}
	list_free(*value);
	*value = list;
	return 0;
}

/* Whether it is the same again when it was written to a file. */
static bool is_one_line(const char *text)
{
	const char *p;

	for (p = text; *p; p++)
		if (iscntrl((unsigned char)*p) && *p != '\t')
			return false;
	return p == text || p[-1] != '\\';
}

int config_value_parse(const struct config_key *key, const char *text, struct config *config,
		       char *why, size_t size)
{
	if (!*text && key->type != CONFIG_LIST) {
		snprintf(why, size, "needs a value");
		return -EINVAL;
	}
	if ((key->type == CONFIG_PATH || key->type == CONFIG_LIST) && !is_one_line(text)) {
		snprintf(why, size, "must have no control bytes and no backslash at its end");
		return -EINVAL;
	}
	switch (key->type) {
	case CONFIG_BOOL:
		return parse_bool(key, text, config, why, size);
	case CONFIG_COUNT:
	case CONFIG_SIZE:
	case CONFIG_DURATION:
		return parse_number(key, text, config, why, size);
	case CONFIG_PATH:
		return parse_path(key, text, config, why, size);
	case CONFIG_NAME:
		return parse_name(key, text, config, why, size);
	case CONFIG_WORD:
		return parse_word(key, text, config, why, size);
	case CONFIG_LIST:
		break;
	}
	return parse_list(key, text, config, why, size);
}

static void print_list(char *const *list, size_t column, FILE *out)
{
	size_t used = column;

	for (size_t i = 0; list[i]; i++) {
		size_t length = strlen(list[i]);

		if (i && used + 1 + length > LIST_COLUMN) {
			fputs(" \\\n   ", out);
			used = 3;
		}
		fprintf(out, "%s%s", i ? " " : "", list[i]);
		used += length + 1;
	}
}

void config_value_print(const struct config_key *key, const struct config *config, FILE *out)
{
	const void *value = value_at(key, config);
	char text[32];
	uint64_t n;

	switch (key->type) {
	case CONFIG_BOOL:
		fputs(*(const bool *)value ? "yes" : "no", out);
		break;
	case CONFIG_COUNT:
	case CONFIG_SIZE:
	case CONFIG_DURATION:
		memcpy(&n, value, sizeof(n));
		print_quantity(n, key_units(key), text, sizeof(text));
		fputs(text, out);
		break;
	case CONFIG_PATH:
	case CONFIG_NAME:
	case CONFIG_WORD:
		fputs(*(char *const *)value, out);
		break;
	case CONFIG_LIST:
		print_list(*(char **const *)value, strlen(key->key) + 3, out);
		break;
	}
}

void config_value_range(const struct config_key *key, char *text, size_t size)
{
	char min[32], max[32];

	switch (key->type) {
	case CONFIG_BOOL:
		snprintf(text, size, "yes or no");
		break;
	case CONFIG_COUNT:
	case CONFIG_SIZE:
	case CONFIG_DURATION:
		print_quantity(key->min, key_units(key), min, sizeof(min));
		print_quantity(key->max, key_units(key), max, sizeof(max));
		snprintf(text, size, "%sbetween %s and %s",
			 key->power_of_two ? "a power of two " : "", min, max);
		break;
	case CONFIG_PATH:
		snprintf(text, size, "an absolute path of at most %" PRIu64 " bytes", key->max);
		break;
	case CONFIG_NAME:
		snprintf(text, size, "a name of at most %" PRIu64 " bytes", key->max);
		break;
	case CONFIG_WORD:
		snprintf(text, size, "one of: %s", key->words);
		break;
	case CONFIG_LIST:
		snprintf(text, size, "at most %" PRIu64 " names, space between them", key->max);
		break;
	}
}

void config_value_clear(const struct config_key *key, struct config *config)
{
	void *value = value_at(key, config);

	if (key->type == CONFIG_PATH || key->type == CONFIG_NAME || key->type == CONFIG_WORD) {
		free(*(char **)value);
		*(char **)value = NULL;
	} else if (key->type == CONFIG_LIST) {
		*(char ***)value = list_free(*(char ***)value);
	}
}

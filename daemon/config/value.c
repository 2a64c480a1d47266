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
#include "common/quantity.h"
#include "daemon/config/keys.h"
#include "daemon/config/tiers.h"

#define BLANKS " \t"

/* A printed list continues on the next line before it reaches this column. */
#define LIST_COLUMN 90

static const struct quantity_unit size_units[] = {
	{ "G", 1 << 30 },
	{ "M", 1 << 20 },
	{ "K", 1 << 10 },
};

/* A size without a unit is in bytes. A count never has a unit. */
static const struct quantity_syntax sizes = {
	.units = size_units,
	.n_units = ARRAY_SIZE(size_units),
	.bare_factor = 1,
};
static const struct quantity_syntax counts = { .bare_factor = 1 };

/* A percentage is stored in millionths. Its number may have a fraction. */
enum { PERCENT = 10000 };

static const struct quantity_syntax percents = {
	.bare_factor = PERCENT,
	.has_fractions = true,
	.has_spaces = true,
};

static void *value_at(const struct config_key *key, const void *config)
{
	return (char *)(uintptr_t)config + key->offset;
}

static const struct quantity_syntax *key_syntax(const struct config_key *key)
{
	if (key->type == CONFIG_DURATION)
		return &config_durations;
	return key->type == CONFIG_SIZE ? &sizes : &counts;
}

/*
 * Writes the number n to `text`. The type of the key says whether n is a time, a size or a count.
 */
static void print_quantity(const struct config_key *key, uint64_t n, char *text, size_t size)
{
	quantity_print(key_syntax(key), n, text, size);
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

static int parse_number(const struct config_key *key, const char *text, void *config, char *why,
			size_t size)
{
	int64_t value = 0;
	uint64_t n;
	char range[96];
	int r = quantity_parse(text, strlen(text), key_syntax(key), &value);

	n = (uint64_t)value;
	config_value_range(key, range, sizeof(range));
	if (r == -EINVAL)
		snprintf(why, size, "%s", key_expects(key));
	else if (r == -ERANGE || n < key->min || n > key->max ||
		 (key->power_of_two && (n & (n - 1)) != 0))
		snprintf(why, size, "must be %s", range);
	else {
		/*
		 * The member for a duration is an int64_t, but no range allows a negative value, so
		 * that the bytes of the uint64_t can be copied.
		 */
		memcpy(value_at(key, config), &n, sizeof(n));
		return 0;
	}
	return -EINVAL;
}

/* Writes a share, given in millionths, as a percentage without needless zeros: "1%", "0.05%". */
static void print_percent(uint64_t millionths, char *text, size_t size)
{
	char fraction[8];
	size_t n;

	snprintf(fraction, sizeof(fraction), "%04" PRIu64, millionths % PERCENT);
	for (n = 4; n && fraction[n - 1] == '0'; n--)
		fraction[n - 1] = '\0';
	snprintf(text, size, "%" PRIu64 "%s%s%%", millionths / PERCENT, n ? "." : "", fraction);
}

static int parse_percent(const struct config_key *key, const char *text, void *config, char *why,
			 size_t size)
{
	size_t length = strlen(text);
	int64_t value = 0;
	char range[96];
	int r;

	if (strcasecmp(text, "off") == 0) {
		*(uint64_t *)value_at(key, config) = 0;
		return 0;
	}
	r = quantity_parse(text, length - (text[length - 1] == '%'), &percents, &value);
	if (r == 0 && (uint64_t)value >= key->min && (uint64_t)value <= key->max) {
		*(uint64_t *)value_at(key, config) = (uint64_t)value;
		return 0;
	}
	config_value_range(key, range, sizeof(range));
	if (r == -EINVAL)
		snprintf(why, size, "must be a percentage, like 0.5%%, or off");
	else
		snprintf(why, size, "must be %s", range);
	return -EINVAL;
}

static int parse_bool(const struct config_key *key, const char *text, void *config, char *why,
		      size_t size)
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

static int replace_string(const struct config_key *key, const char *text, void *config)
{
	char **value = value_at(key, config), *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	free(*value);
	*value = copy;
	return 0;
}

static int parse_path(const struct config_key *key, const char *text, void *config, char *why,
		      size_t size)
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

static int parse_word(const struct config_key *key, const char *text, void *config, char *why,
		      size_t size)
{
	if (words_have(key->words, text))
		return replace_string(key, text, config);
	snprintf(why, size, "must be one of: %s", key->words);
	return -EINVAL;
}

static int parse_name(const struct config_key *key, const char *text, void *config, char *why,
		      size_t size)
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

/*
 * Returns the words of the string `text` as an array that ends with NULL. Returns NULL when out of
 * memory.
 */
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

static int parse_list(const struct config_key *key, const char *text, void *config, char *why,
		      size_t size)
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

/*
 * True if the string can be written on one line of a configuration file and is read back unchanged.
 */
static bool is_one_line(const char *text)
{
	const char *p;

	for (p = text; *p; p++)
		if (iscntrl((unsigned char)*p) && *p != '\t')
			return false;
	return p == text || p[-1] != '\\';
}

int config_value_parse(const struct config_key *key, const char *text, void *config, char *why,
		       size_t size)
{
	if (!*text && key->type != CONFIG_LIST && (key->type != CONFIG_NAME || key->min > 0)) {
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
	case CONFIG_PERCENT:
		return parse_percent(key, text, config, why, size);
	case CONFIG_PATH:
		return parse_path(key, text, config, why, size);
	case CONFIG_NAME:
		return parse_name(key, text, config, why, size);
	case CONFIG_TIERS:
		return config_tiers_parse(text, value_at(key, config), why, size);
	case CONFIG_WORD:
		return parse_word(key, text, config, why, size);
	case CONFIG_TEXT:
		return replace_string(key, text, config);
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

void config_value_print(const struct config_key *key, const void *config, FILE *out)
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
		print_quantity(key, n, text, sizeof(text));
		fputs(text, out);
		break;
	case CONFIG_PERCENT:
		memcpy(&n, value, sizeof(n));
		print_percent(n, text, sizeof(text));
		fputs(n ? text : "off", out);
		break;
	case CONFIG_PATH:
	case CONFIG_NAME:
	case CONFIG_WORD:
	case CONFIG_TEXT:
		fputs(*(char *const *)value, out);
		break;
	case CONFIG_TIERS:
		config_tiers_print(value, out);
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
		print_quantity(key, key->min, min, sizeof(min));
		print_quantity(key, key->max, max, sizeof(max));
		snprintf(text, size, "%sbetween %s and %s",
			 key->power_of_two ? "a power of two " : "", min, max);
		break;
	case CONFIG_PERCENT:
		print_percent(key->min, min, sizeof(min));
		print_percent(key->max, max, sizeof(max));
		snprintf(text, size, "between %s and %s, or off", min, max);
		break;
	case CONFIG_PATH:
		snprintf(text, size, "an absolute path of at most %" PRIu64 " bytes", key->max);
		break;
	case CONFIG_NAME:
		snprintf(text, size, "a name of at most %" PRIu64 " bytes%s", key->max,
			 key->min ? "" : ", or nothing");
		break;
	case CONFIG_WORD:
		snprintf(text, size, "one of: %s", key->words);
		break;
	case CONFIG_TEXT:
		snprintf(text, size, "a text");
		break;
	case CONFIG_TIERS:
		snprintf(text, size, "1 to %d tiers LENGTH:KEEP:SHARE, commas between them",
			 CONFIG_TIERS_MAX);
		break;
	case CONFIG_LIST:
		snprintf(text, size, "at most %" PRIu64 " names, space between them", key->max);
		break;
	}
}

void config_value_clear(const struct config_key *key, void *config)
{
	void *value = value_at(key, config);

	if (key->type == CONFIG_PATH || key->type == CONFIG_NAME || key->type == CONFIG_WORD ||
	    key->type == CONFIG_TEXT) {
		free(*(char **)value);
		*(char **)value = NULL;
	} else if (key->type == CONFIG_LIST) {
		*(char ***)value = list_free(*(char ***)value);
	}
}

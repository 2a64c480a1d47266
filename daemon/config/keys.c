/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/config/keys.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "common/base.h"
#include "common/edit_distance.h"
#include "common/quantity.h"
#include "daemon/config/config.h"

#define KIB    UINT64_C(1024)
#define MIB    (KIB * 1024)
#define GIB    (MIB * 1024)
#define MS     ((uint64_t)NS_PER_MS)
#define SEC    ((uint64_t)NS_PER_S)
#define MINUTE (60 * SEC)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
/* One percent, in the unit of a CONFIG_PERCENT. */
#define PERCENT UINT64_C(10000)

/*
 * Macros for two columns of settings.def: the range of a setting, and when a change of it is
 * applied.
 */
#define BETWEEN(least, most)	  .min = (least), .max = (most)
#define POWER_OF_TWO(least, most) .min = (least), .max = (most), .power_of_two = true
#define BYTES(least, most)	  .min = (least), .max = (most)
#define NAMES(most)		  .max = (most)
#define ONE_OF(allowed)		  .words = allowed
#define YES_OR_NO		  .max = 1
#define EACH_LONGER		  .max = CONFIG_TIERS_MAX
#define RELOAD			  true
#define RESTART			  false

const struct config_key config_keys[] = {
#define SECTION(...)
#define SETTING(section_, key_, type_, range_, fallback_, member_, when_, help_, ...) \
	{                                                                             \
		.section = section_,                                                  \
		.key = key_,                                                          \
		.type = CONFIG_##type_,                                               \
		range_,                                                               \
		.fallback = fallback_,                                                \
		.offset = offsetof(struct config, member_),                           \
		.is_live = when_,                                                     \
		.help = help_,                                                        \
		.details = "" __VA_ARGS__,                                            \
	},
#include "daemon/config/settings.def"
};

/*
 * Checks that each setting that a reload changes is an integer, because other threads read it
 * during the reload, and only an integer is written in one atomic step.
 */
#define SECTION(...)
#define SETTING(section, key, type, range, fallback, member, when, ...)                            \
	_Static_assert(when == RESTART || CONFIG_##type == CONFIG_COUNT ||                         \
			       CONFIG_##type == CONFIG_SIZE || CONFIG_##type == CONFIG_DURATION || \
			       CONFIG_##type == CONFIG_PERCENT,                                    \
		       section "." key " cannot change while stackd runs");
#include "daemon/config/settings.def"

const struct config_section config_sections[] = {
#define SECTION(name_, text_) { .name = name_, .text = text_ },
#define SETTING(...)
#include "daemon/config/settings.def"
};

/* The units of time, largest first. */
static const struct quantity_unit time_units[] = {
	{ "d", 86400 * NS_PER_S },
	{ "h", 3600 * NS_PER_S },
	{ "min", 60 * NS_PER_S },
	{ "s", NS_PER_S },
	{ "ms", NS_PER_MS },
	{ "us", NS_PER_US },
	{ "ns", 1 },
};

const struct quantity_syntax config_durations = {
	.units = time_units,
	.n_units = ARRAY_SIZE(time_units),
	.bare_factor = NS_PER_S,
};

const size_t config_n_sections = ARRAY_SIZE(config_sections);
const size_t config_n_keys = ARRAY_SIZE(config_keys);

int config_key_find(const char *section, const char *key)
{
	for (size_t i = 0; i < config_n_keys; i++)
		if (strcmp(config_keys[i].section, section) == 0 &&
		    strcmp(config_keys[i].key, key) == 0)
			return (int)i;
	return -1;
}

/*
 * Collects the parts of the message about an unknown section or key: the allowed names, and the one
 * of them that was probably meant.
 */
struct choices {
	const char *given;
	/* the allowed name that is most similar to `given`; NULL if none is similar */
	const char *nearest;
	/* the edit distance between `given` and `nearest`; TOO_FAR if `nearest` is NULL */
	size_t distance;
	char list[256]; /* the allowed names, with a space before each */
};

static void choices_add(struct choices *choices, const char *name)
{
	size_t used = strlen(choices->list);
	size_t distance = edit_distance(choices->given, strlen(choices->given), name, strlen(name));

	snprintf(choices->list + used, sizeof(choices->list) - used, " %s", name);
	if (distance < choices->distance) {
		choices->distance = distance;
		choices->nearest = name;
	}
}

static void choices_print(const struct choices *choices, const char *what, char *why, size_t size)
{
	if (choices->nearest)
		snprintf(why, size, "unknown %s, did you mean \"%s\"? allowed:%s", what,
			 choices->nearest, choices->list);
	else
		snprintf(why, size, "unknown %s; allowed:%s", what, choices->list);
}

/* A name is suggested only if its edit distance from the unknown name is less than this. */
enum { TOO_FAR = 4 };

void config_key_explain(const char *section, const char *key, char *why, size_t size)
{
	struct choices sections = { .given = section, .distance = TOO_FAR };
	struct choices keys = { .given = key, .distance = TOO_FAR };
	const char *last = "";

	for (size_t i = 0; i < config_n_keys; i++) {
		if (strcmp(config_keys[i].section, last) != 0)
			choices_add(&sections, config_keys[i].section);
		last = config_keys[i].section;
		if (strcmp(last, section) == 0)
			choices_add(&keys, config_keys[i].key);
	}
	if (keys.list[0])
		choices_print(&keys, "key", why, size);
	else
		choices_print(&sections, "section", why, size);
}

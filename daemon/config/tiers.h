/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_TIERS_H
#define STACKD_DAEMON_CONFIG_TIERS_H

/*
 * The setting [store] tiers. Each tier says how long its windows on disk are, and up to which age
 * it keeps them. Older windows are merged into the longer windows of the next tier. Plain values;
 * any thread.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Maximum number of tiers in the setting. */
enum { CONFIG_TIERS_MAX = 4 };

struct config_tier {
	int64_t length_ns; /* length of the tier's windows */
	int64_t keep_ns;   /* the age up to which the tier keeps windows */
	uint32_t share;	   /* percentage of [store] max_size that the tier may always use */
};

struct config_tiers {
	struct config_tier tier[CONFIG_TIERS_MAX]; /* shortest windows first */
	size_t n;
};

/*
 * Parses text like "5s:1h:25%, 60s:24h:35%". Returns 0 and sets *out; or returns -EINVAL and writes
 * to `why` which tier is wrong, and why.
 */
int config_tiers_parse(const char *text, struct config_tiers *out, char *why, size_t size);

/* Prints the tiers in the form that config_tiers_parse() reads. */
void config_tiers_print(const struct config_tiers *tiers, FILE *out);

#endif

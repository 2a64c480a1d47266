/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_VALUE_H
#define STACKD_DAEMON_CONFIG_VALUE_H

/*
 * Values of settings as text and as members of struct config, by the type and range that their
 * row of the key table states. Strings in the struct are malloc'ed and the struct's. No state.
 */

#include <stddef.h>
#include <stdio.h>

struct config;
struct config_key;

/*
 * Checks text and stores it in *config (what was there is freed). -EINVAL with the reason in why
 * ("0s: must be between 100ms and 10min"), *config untouched; or -ENOMEM.
 */
int config_value_parse(const struct config_key *key, const char *text, struct config *config,
		       char *why, size_t size);

/* Prints the value as a file would have it. A list goes on over several lines. */
void config_value_print(const struct config_key *key, const struct config *config, FILE *out);

/* What is allowed, for people: "between 100ms and 10min", "yes or no". */
void config_value_range(const struct config_key *key, char *text, size_t size);

/* Frees what the value owns. */
void config_value_clear(const struct config_key *key, struct config *config);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_VALUE_H
#define STACKD_DAEMON_CONFIG_VALUE_H

/*
 * Converts the values of settings between text and members of struct config, by the type and range
 * in the key table. The struct owns its strings, which are malloc'ed. No state.
 */

#include <stddef.h>
#include <stdio.h>

struct config;
struct config_key;

/*
 * Checks text and stores its value in *config, whose old value is freed. Returns 0; -EINVAL with
 * the reason in why ("must be between 100ms and 10min"), or -ENOMEM, both with *config unchanged.
 */
int config_value_parse(const struct config_key *key, const char *text, struct config *config,
		       char *why, size_t size);

/* Prints the value as it is written in a file; a long list is continued over several lines. */
void config_value_print(const struct config_key *key, const struct config *config, FILE *out);

/* Writes what is allowed to text: "between 100ms and 10min", "yes or no". */
void config_value_range(const struct config_key *key, char *text, size_t size);

/* Frees the strings of the value. */
void config_value_clear(const struct config_key *key, struct config *config);

#endif

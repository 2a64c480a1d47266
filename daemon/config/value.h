/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_VALUE_H
#define STACKD_DAEMON_CONFIG_VALUE_H

/*
 * Converts the values of settings between text and members of a struct. A key says which type and
 * range the value has, and at which offset of the struct it is. `config` points to that struct,
 * such as a struct config. It owns its strings, which are malloc'ed. No state.
 */

#include <stddef.h>
#include <stdio.h>

struct config_key;

/*
 * Checks the string `text` and stores its value in *config; the old value is freed. Returns 0,
 * -EINVAL or -ENOMEM. After a failure, *config is unchanged. After -EINVAL, the buffer `why` has
 * the reason, such as "must be between 100ms and 10min".
 */
int config_value_parse(const struct config_key *key, const char *text, void *config, char *why,
		       size_t size);

/*
 * Prints the value of a key in the form that a configuration file has. A long list continues on
 * further lines.
 */
void config_value_print(const struct config_key *key, const void *config, FILE *out);

/*
 * Describes the allowed values in the buffer `text`, such as "between 100ms and 10min" or "yes or
 * no".
 */
void config_value_range(const struct config_key *key, char *text, size_t size);

/* Frees the strings in *config that belong to the value of this key. */
void config_value_clear(const struct config_key *key, void *config);

#endif

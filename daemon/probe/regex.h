/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_REGEX_H
#define STACKD_DAEMON_PROBE_REGEX_H

/*
 * Matches names of functions against a regular expression that a client wrote, with limits on the
 * memory and CPU time that this takes: a short expression can ask for gigabytes or hours. Uses
 * PCRE2. A regex is used by one thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>

/* Maximum length of a regular expression, in bytes. */
#define REGEX_MAX 256

struct regex;

/*
 * Compiles a regular expression. Returns 0, -ENOMEM or -EINVAL. On -EINVAL, `why` (size bytes) gets
 * one line that says what is wrong, and where.
 */
int regex_new(const char *text, struct regex **out, char *why, size_t size);
struct regex *regex_free(struct regex *regex);

/*
 * True if the expression matches a part of the name. Once a match has taken too long, false for
 * every name: see regex_is_costly().
 */
bool regex_fits(struct regex *regex, const char *name);

/* True if the expression took more CPU time or memory than a search may: its result is invalid. */
bool regex_is_costly(const struct regex *regex);

#endif

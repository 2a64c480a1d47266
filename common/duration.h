/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_DURATION_H
#define STACKD_COMMON_DURATION_H

/*
 * Converts lengths of time between the text that people write or read, like "1h 30min", and
 * nanoseconds. No state, nothing allocated, any thread.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * Reads a duration like "30s", "1h 30min", "1.5ms" or "250" in the syntax of systemd.time(7). A
 * number without a unit is in units of bare_unit_ns nanoseconds. A sign is refused. Returns 0;
 * -EINVAL if the text is not a duration, -ERANGE if it does not fit 64 bits, both with *ns_out
 * unchanged.
 */
int duration_parse(const char *text, int64_t bare_unit_ns, int64_t *ns_out);

/* Reads a duration as duration_parse() does, but from the first n bytes of text. */
int duration_parse_n(const char *text, size_t n, int64_t bare_unit_ns, int64_t *ns_out);

enum { DURATION_TEXT_MAX = 48 };

/*
 * Writes a duration in ns as a text with at most four significant digits or two units: "12.34 us",
 * "1.200 s", "3 h 12 min".
 */
void duration_format(int64_t ns, char text[static DURATION_TEXT_MAX]);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_DURATION_H
#define STACKD_COMMON_DURATION_H

/*
 * Lengths of time as people write and read them: in goes text, out come nanoseconds, and
 * back. Pure: no state, nothing allocated, any thread.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * Reads "30s", "1h 30min", "1.5ms", "250" as systemd.time(7) does. A number without a unit
 * counts bare_unit_ns. No sign. Returns 0; -EINVAL when it is no duration, -ERANGE when it
 * does not fit 64 bits; *ns_out is untouched then.
 */
int duration_parse(const char *text, int64_t bare_unit_ns, int64_t *ns_out);

/* The same for the first n bytes of text. */
int duration_parse_n(const char *text, size_t n, int64_t bare_unit_ns, int64_t *ns_out);

enum { DURATION_TEXT_MAX = 48 };

/* Three or four digits that matter and a unit: "12.3 us", "1.20 s", "3 h 12 min". */
void duration_format(int64_t ns, char text[static DURATION_TEXT_MAX]);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_SPARKLINE_H
#define STACKD_CLIENT_RENDER_SPARKLINE_H

/* Draws how a time changed over a range as a few characters. No state; any thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPARKLINE_MAX = 64 };

/*
 * Returns a character of one column for each of n slots, SPARKLINE_MAX at most: the higher, the
 * more of the slot's covered time `ns` is, compared with the other slots. A space stands for no
 * time, and a dot (without UTF-8: a question mark) for a slot that is not covered. The caller frees
 * the text; the program ends when memory runs out.
 */
char *sparkline(const int64_t *ns, const int64_t *covered_ns, size_t n, bool has_utf8);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/sparkline.h"

#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"

enum { LEVELS = 8, CHARACTER_BYTES = 3 };

static const char *const blocks[LEVELS] = { "\xe2\x96\x81", "\xe2\x96\x82", "\xe2\x96\x83",
					    "\xe2\x96\x84", "\xe2\x96\x85", "\xe2\x96\x86",
					    "\xe2\x96\x87", "\xe2\x96\x88" };
static const char *const signs[LEVELS] = { ".", ":", "-", "=", "+", "*", "#", "@" };

static double rate_of(int64_t ns, int64_t covered_ns)
{
	return ns > 0 && covered_ns > 0 ? (double)ns / (double)covered_ns : 0;
}

char *sparkline(const int64_t *ns, const int64_t *covered_ns, size_t n, bool has_utf8)
{
	char *text = must(calloc(SPARKLINE_MAX + 1, CHARACTER_BYTES)), *out = text;
	double most = 0;

	if (n > SPARKLINE_MAX)
		n = SPARKLINE_MAX;
	for (size_t i = 0; i < n; i++)
		if (rate_of(ns[i], covered_ns[i]) > most)
			most = rate_of(ns[i], covered_ns[i]);
	for (size_t i = 0; i < n; i++) {
		double rate = rate_of(ns[i], covered_ns[i]);
		size_t level = rate > 0 ? (size_t)(rate / most * LEVELS) : 0;

		if (level == LEVELS)
			level--;
		if (covered_ns[i] <= 0)
			out = stpcpy(out, has_utf8 ? "\xc2\xb7" : "?");
		else if (rate <= 0)
			out = stpcpy(out, " ");
		else
			out = stpcpy(out, has_utf8 ? blocks[level] : signs[level]);
	}
	return text;
}

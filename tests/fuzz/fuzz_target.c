/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes patterns of function names, which a client writes. The first byte says whether the pattern
 * is a regular expression. A wrong pattern must be explained, and a right one must not take long to
 * match.
 */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/probe/target.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {
		"", "vfs_read", "std::vector<int, a::b<c> >::push()",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	};
	struct target_pattern pattern;
	char why[512] = "", *text;
	int64_t start_ns;
	int r;

	if (size < 1)
		return 0;
	text = fuzz_string(data + 1, size - 1);
	start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	r = target_parse(text, !(data[0] & 1), &pattern, why, sizeof(why));
	REQUIRE(r == 0 || r == -EINVAL);
	REQUIRE((r == 0) == (why[0] == '\0'));
	REQUIRE(memchr(why, '\0', sizeof(why)));
	for (size_t i = 0; !r && i < ARRAY_SIZE(names); i++)
		target_fits(&pattern, names[i]);
	/* Sanitizers and a busy host take their share of it; without limits, it would be hours. */
	REQUIRE(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns < NS_PER_S);
	if (!r)
		target_pattern_fini(&pattern);
	free(text);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes the readers of points in time and durations. The first byte says what the text is for and
 * in which zone. A failure must leave the result unchanged; a duration must read the same by
 * length.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/base.h"
#include "common/duration.h"
#include "common/when.h"
#include "tests/fuzz/fuzz.h"

enum { UNTOUCHED = 4711 };

static void zone_set(unsigned int i)
{
	static const char *const zones[] = { "UTC", "CET-1CEST,M3.5.0,M10.5.0/3",
					     "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "XXX+24" };
	static unsigned int current = UINT32_MAX;

	i %= ARRAY_SIZE(zones);
	if (i == current)
		return;
	current = i;
	setenv("TZ", zones[i], 1);
	tzset();
}

static void when_check(const char *text, unsigned int mode)
{
	static const int64_t nows[] = { 0, 1772000000 * NS_PER_S, INT64_MAX, INT64_MIN + 1 };
	struct when_context context = {
		.use = (enum when_use)(mode % 3),
		.now = nows[mode / 3 % ARRAY_SIZE(nows)],
		.after = mode & 0x40 ? INT64_MIN : nows[mode / 12 % ARRAY_SIZE(nows)],
	};
	int64_t ns = UNTOUCHED;
	int r = when_parse(text, &context, &ns);

	REQUIRE(r == 0 || r == -EINVAL || r == -ERANGE);
	if (r < 0)
		REQUIRE(ns == UNTOUCHED);
}

static void duration_check(const char *text, size_t len)
{
	char shown[DURATION_TEXT_MAX];
	int64_t ns = UNTOUCHED, again = UNTOUCHED;
	int r = duration_parse(text, NS_PER_S, &ns);

	REQUIRE(r == 0 || r == -EINVAL || r == -ERANGE);
	if (strlen(text) == len) {
		REQUIRE(duration_parse_n(text, len, NS_PER_S, &again) == r);
		REQUIRE(again == ns);
	}
	if (r < 0)
		REQUIRE(ns == UNTOUCHED);
	else
		REQUIRE(ns >= 0);
	duration_format(ns, shown);
	REQUIRE(strlen(shown) < sizeof(shown));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size < 1)
		return 0;
	zone_set(data[0] >> 6);
	text = fuzz_string(data + 1, size - 1);
	when_check(text, data[0]);
	duration_check(text, size - 1);
	free(text);
	return 0;
}

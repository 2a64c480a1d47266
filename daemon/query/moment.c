/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/moment.h"

#include <time.h>

#include "common/base.h"

void moment_text(int64_t real_ns, char text[static MOMENT_TEXT])
{
	time_t at = (time_t)(real_ns / NS_PER_S);
	struct tm tm;

	gmtime_r(&at, &tm);
	strftime(text, MOMENT_TEXT, "%Y-%m-%dT%H:%M:%S+00:00", &tm);
}

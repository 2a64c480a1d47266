/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/moment.h"

#include <time.h>

#include "common/base.h"

void moment_text(int64_t real_ns, int64_t now, char text[static MOMENT_TEXT])
{
	time_t at = (time_t)(real_ns / NS_PER_S), today = (time_t)(now / NS_PER_S);
	struct tm tm, present;

	localtime_r(&at, &tm);
	localtime_r(&today, &present);
	strftime(text, MOMENT_TEXT,
		 tm.tm_year == present.tm_year && tm.tm_yday == present.tm_yday
			 ? "%H:%M:%S %Z"
			 : "%Y-%m-%d %H:%M:%S %Z",
		 &tm);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "client/render/render.h"

bool reply_is_iolat(const struct wire_snapshot_reply *reply)
{
	return reply->probe && strcmp(reply->probe, "iolat") == 0;
}

bool reply_is_sampled(const struct wire_snapshot_reply *reply)
{
	return reply->totals.samples != WIRE_ABSENT;
}

bool reply_has_calls(const struct wire_snapshot_reply *reply)
{
	return reply->totals.calls != WIRE_ABSENT;
}

bool reply_has_wakers(const struct wire_snapshot_reply *reply)
{
	return strcmp(reply->probe, "offwake") == 0;
}

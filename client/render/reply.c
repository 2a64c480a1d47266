/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "client/render/render.h"
#include "common/note_words.h"

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

const char *reply_above(const struct wire_snapshot_reply *reply)
{
	static const char begin[] = NOTE_BLIND ABOVE;

	for (size_t i = 0; i < reply->notes.n; i++)
		if (strncmp(reply->notes.v[i], begin, strlen(begin)) == 0)
			return reply->notes.v[i] + strlen(NOTE_BLIND);
	return NULL;
}

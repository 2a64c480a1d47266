/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/wait_reason.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *word;
	const char *text;
} reasons[] = {
#define REASON_ROW(name, word, text) [REASON_##name] = { word, text },
	WAIT_REASONS(REASON_ROW)
#undef REASON_ROW
};

const char *wait_reason_word(enum wait_reason reason)
{
	return reasons[reason].word;
}

const char *wait_reason_text(enum wait_reason reason)
{
	return reasons[reason].text;
}

enum wait_reason wait_reason_find(const char *word)
{
	enum wait_reason reason = 0;

	while (reason < WAIT_REASON_N && (!word || strcmp(reasons[reason].word, word) != 0))
		reason++;
	return reason;
}

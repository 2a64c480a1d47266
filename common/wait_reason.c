/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "common/wait_reason.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "common/edit_distance.h"

static const struct {
	const char *word;
	const char *text;
} reasons[] = {
#define REASON_ROW(name, word, text) [REASON_##name] = { word, text },
	WAIT_REASONS(REASON_ROW)
#undef REASON_ROW
};

/* Words of earlier versions, which filters do not take any more; also in debian/NEWS. */
static const struct {
	const char *before;
	const char *now;
} renamed[] = {
	{ "disk-read", "file-read" },
	{ "disk-write", "writeback" },
	{ "file-write", "writeback" },
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

bool wait_reason_is_lock(enum wait_reason reason)
{
	switch (reason) {
	case REASON_MUTEX:
	case REASON_RWLOCK:
	case REASON_PI_MUTEX:
	case REASON_PROGRAM_LOCK:
	case REASON_GIL:
	case REASON_SYSV_SEM:
	case REASON_FLOCK:
	case REASON_FCNTL:
	case REASON_FILE_LOCK:
		return true;
	default:
		return false;
	}
}

/* Returns the word that is most like the text: at most about a third of it is wrong. Or NULL. */
static const char *word_near(const char *text)
{
	size_t n = strlen(text), least = n / 3 + 2;
	const char *near = NULL;

	for (enum wait_reason i = 0; i < WAIT_REASON_N; i++) {
		size_t distance = edit_distance(text, n, reasons[i].word, strlen(reasons[i].word));

		if (distance < least) {
			near = reasons[i].word;
			least = distance;
		}
	}
	return near;
}

void wait_reason_refuse(const char *glob, char out[static WAIT_REASON_REFUSAL_LEN])
{
	const char *near = word_near(glob);

	for (size_t i = 0; i < ARRAY_SIZE(renamed); i++) {
		if (strcmp(renamed[i].before, glob) != 0)
			continue;
		snprintf(out, WAIT_REASON_REFUSAL_LEN, "%s is called %s now", glob, renamed[i].now);
		return;
	}
	snprintf(out, WAIT_REASON_REFUSAL_LEN,
		 "%.40s is no reason to wait for%s%s%s; stackctl(1) lists them", glob,
		 near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

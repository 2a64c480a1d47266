/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_NOTE_WORDS_H
#define STACKD_COMMON_NOTE_WORDS_H

#include <stdbool.h>
#include <string.h>

/*
 * How the notes of an answer begin that a short head leaves out: `stackctl status` says the same,
 * or the head does in a line of its own.
 */
#define NOTE_BLIND   "not seen: "
#define NOTE_SAMPLED "sampled: "
#define NOTE_BUDGET  "budget: "
#define NOTE_MERGED  "windows combined from several"

/*
 * ABOVE is how the words begin that name the highest layer of I/O that is recorded, and the command
 * that records all layers; ABOVE_DISKS if only requests to disks are recorded.
 */
#define ABOVE	    "I/O above "
#define ABOVE_DISKS ABOVE "block "

/* True if these words, which may be NULL, say that only requests to disks are recorded. */
static inline bool above_is_disks(const char *above)
{
	return above && strncmp(above, ABOVE_DISKS, strlen(ABOVE_DISKS)) == 0;
}

#endif

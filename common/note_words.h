/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_NOTE_WORDS_H
#define STACKD_COMMON_NOTE_WORDS_H

/*
 * How the notes of an answer begin that a short head leaves out: `stackctl status` says the same,
 * or the head does in a line of its own.
 */
#define NOTE_BLIND   "not seen: "
#define NOTE_SAMPLED "sampled: "
#define NOTE_BUDGET  "budget: "
#define NOTE_MERGED  "windows combined from several"

#endif

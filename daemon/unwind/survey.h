/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_SURVEY_H
#define STACKD_DAEMON_UNWIND_SURVEY_H

/*
 * Finds out whether x86-64 code keeps frame pointers, from how its functions begin. Counts are in
 * memory of the caller; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct survey {
	uint32_t framed; /* number of functions that set a frame pointer first */
	uint32_t bare;	 /* number of functions that begin otherwise */
};

/*
 * Counts the functions in n bytes of code. `address` is the address of the first byte. Functions
 * that do not use the stack are not counted.
 */
void survey_add(struct survey *survey, uint64_t address, const uint8_t *code, size_t n);

/* True if the counted functions keep frame pointers. False if none was counted. */
bool survey_keeps_frames(const struct survey *survey);

/*
 * True if code is known not to keep frame pointers, even if most code of its file does, as assembly
 * in a compiled program.
 */
bool survey_is_bare(const struct survey *survey);

#endif

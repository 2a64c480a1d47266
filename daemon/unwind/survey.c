/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/unwind/survey.h"

#include <string.h>

#include "common/base.h"

enum {
	RET = 0xc3,
	INT3 = 0xcc,
	NOP = 0x90,
	PUSH_BP = 0x55,
	PUSH_BX = 0x53,
	PREFIX = 0x41, /* of the instructions that use r8 to r15 */
	PUSH_R12 = 0x54,
	PUSH_R15 = 0x57,
	MARK_BYTES = 4,	     /* size of endbr64 */
	FUNCTION_ALIGN = 16, /* alignment of functions, except in code optimized for size */
	/*
	 * maximum number of bytes between push %rbp and mov %rsp,%rbp, where compilers schedule
	 * other instructions
	 */
	BETWEEN_MAX = 24,
	/* code keeps frame pointers if it has at least this number of framed functions per bare one
	 */
	FRAMED_MIN = 4,
	/* minimum number of bare functions by which code is known not to keep frame pointers */
	BARE_MIN = 4,
};

static const uint8_t endbr64[MARK_BYTES] = { 0xf3, 0x0f, 0x1e, 0xfa };
/* mov %rsp,%rbp, in its two encodings */
static const uint8_t set_bp[][3] = { { 0x48, 0x89, 0xe5 }, { 0x48, 0x8b, 0xec } };

/*
 * True if a function may begin at code[i]. The code before it has then ended, and it may have been
 * padded. Long padding instructions end with a 0, as many other instructions do.
 */
static bool is_start(uint64_t address, const uint8_t *code, size_t i)
{
	uint8_t before = i ? code[i - 1] : 0;

	if (i >= MARK_BYTES && !memcmp(code + i - MARK_BYTES, endbr64, MARK_BYTES))
		return true;
	if (before == RET || before == INT3 || before == NOP)
		return true;
	return !before && (address + i) % FUNCTION_ALIGN == 0;
}

/* True if a function that begins with push %rbp at code[i] sets its frame pointer. */
static bool is_framed(const uint8_t *code, size_t n, size_t i)
{
	size_t last = i + 1 + BETWEEN_MAX;

	for (size_t j = i + 1; j <= last && j + sizeof(set_bp[0]) <= n; j++)
		for (size_t k = 0; k < ARRAY_SIZE(set_bp); k++)
			if (!memcmp(code + j, set_bp[k], sizeof(set_bp[k])))
				return true;
	return false;
}

/* True if the instruction at code[i] saves a register other than bp, or makes room on the stack. */
static bool uses_stack(const uint8_t *code, size_t n, size_t i)
{
	if (code[i] == PUSH_BX)
		return true;
	if (n - i < 3)
		return false;
	if (code[i] == PREFIX)
		return code[i + 1] >= PUSH_R12 && code[i + 1] <= PUSH_R15;
	/* sub $N,%rsp */
	return code[i] == 0x48 && (code[i + 1] == 0x83 || code[i + 1] == 0x81) &&
	       code[i + 2] == 0xec;
}

void survey_add(struct survey *survey, uint64_t address, const uint8_t *code, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (code[i] != PUSH_BP && !uses_stack(code, n, i))
			continue;
		if (!is_start(address, code, i))
			continue;
		if (code[i] != PUSH_BP)
			survey->bare++;
		else if (is_framed(code, n, i))
			survey->framed++;
		else if (n - i > BETWEEN_MAX)
			survey->bare++;
	}
}

bool survey_keeps_frames(const struct survey *survey)
{
	return survey->framed && survey->framed >= FRAMED_MIN * survey->bare;
}

bool survey_is_bare(const struct survey *survey)
{
	return survey->bare >= BARE_MIN && survey->bare > survey->framed;
}

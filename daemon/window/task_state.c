/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/task_state.h"

#include <errno.h>
#include <string.h>

#include "bpf/shared.h"
#include "common/base.h"

enum { UNINTERRUPTIBLE = 0x2 };

/*
 * The states of a thread, with the bits of include/linux/sched.h and the letters of /proc/PID/stat.
 */
static const struct {
	const char *letter;
	const char *word;
	uint32_t bits;
} states[TASK_STATES] = {
	{ "I", "idle", 0x402 },
	{ "S", "sleeping", 0x1 },
	{ "D", "uninterruptible", UNINTERRUPTIBLE },
	{ "T", "stopped", 0x4 },
	{ "t", "traced", 0x8 },
	{ "X", "dead", 0x10 },
	{ "Z", "zombie", 0x20 },
	{ "P", "parked", 0x40 },
};

int task_state_parse(const char *text)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(states); i++)
		if (strcmp(text, states[i].letter) == 0 || strcmp(text, states[i].word) == 0)
			return (int)i;
	return -ENOENT;
}

/* Replaces the bit of a frozen thread by that of the state that ps shows for it. */
static uint32_t state_of_ps(uint32_t state)
{
	return state & STATE_FROZEN ? (state & ~STATE_FROZEN) | UNINTERRUPTIBLE : state;
}

size_t task_state_index(uint32_t state)
{
	size_t i;

	state = state_of_ps(state);
	for (i = 0; i < ARRAY_SIZE(states); i++)
		if ((state & states[i].bits) == states[i].bits)
			break;
	return i;
}

uint32_t task_state_bits(size_t index)
{
	return states[index].bits;
}

const char *task_state_letter(uint32_t state)
{
	size_t i;

	if (state & (STATE_PREEMPTED | STATE_NEW))
		return "R";
	i = task_state_index(state);
	return i < ARRAY_SIZE(states) ? states[i].letter : "?";
}

const char *task_states_letter(uint32_t states_seen)
{
	uint32_t left = state_of_ps(states_seen & STATE_TASK_MASK);
	const char *letter = states_seen & (STATE_PREEMPTED | STATE_NEW) ? "R" : NULL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		if ((left & states[i].bits) != states[i].bits)
			continue;
		if (letter)
			return "mixed";
		letter = states[i].letter;
		left &= ~states[i].bits;
	}
	return letter ? letter : "?";
}

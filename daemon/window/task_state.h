/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_TASK_STATE_H
#define STACKD_DAEMON_WINDOW_TASK_STATE_H

/*
 * Names of the states in which a thread waits: translates between the kernel's task state bits,
 * which windows contain, and the letters and words of ps. Constant tables; any thread.
 */

#include <stddef.h>
#include <stdint.h>

enum { TASK_STATES = 8 };

/*
 * Returns the index, below TASK_STATES, of the state with this letter ("D") or word
 * ("uninterruptible"); -ENOENT if there is no such state.
 */
int task_state_parse(const char *text);

/*
 * Returns the index of the state that ps would show for these task state bits; TASK_STATES if ps
 * has none.
 */
size_t task_state_index(uint32_t state);

/*
 * Returns the kernel's task state bits for the state with this index. A state may have several
 * bits, and two states may have a bit in common. The state of a thread is the first state whose
 * bits are all set.
 */
uint32_t task_state_bits(size_t index);

/*
 * Returns the letter that ps shows for a thread with these task state bits: "R" if it was preempted
 * or is new, "?" if the state is unknown.
 */
const char *task_state_letter(uint32_t state);

/*
 * Returns the letter for the state of several waits; states_seen is the OR of their task state
 * bits. "mixed" if the states differ, "?" if they are unknown.
 */
const char *task_states_letter(uint32_t states_seen);

#endif

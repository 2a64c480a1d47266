/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_TASK_STATE_H
#define STACKD_DAEMON_WINDOW_TASK_STATE_H

/*
 * Names of the states that a thread waits in: translates between the kernel's task state bits, as
 * rows of windows have them, and the letters and words of ps. Constant tables; any thread.
 */

#include <stddef.h>
#include <stdint.h>

enum { TASK_STATES = 8 };

/*
 * The index, below TASK_STATES, of a state by its letter ("D") or word ("uninterruptible"), or
 * -ENOENT.
 */
int task_state_parse(const char *text);

/* The index of the one state that ps would show for these bits; TASK_STATES if it knows none. */
size_t task_state_index(uint32_t state);

/*
 * The bits of the state with that index. The kernel's states share bits: the one with the lowest
 * index whose bits are all set is the state of a thread.
 */
uint32_t task_state_bits(size_t index);

/* The letter of a wait's state as ps shows it; "R" for preempted and new threads, else "?". */
const char *task_state_letter(uint32_t state);

/* The letter of the states of several waits, or'ed together; "mixed" if they differ. */
const char *task_states_letter(uint32_t states_seen);

#endif

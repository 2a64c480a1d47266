/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_PAGER_H
#define STACKD_CLIENT_CALL_PAGER_H

/*
 * Sends standard output through a pager, such as less, if it is a terminal: the first rows of an
 * answer are those that matter, and would scroll away. Works as journalctl does: $SYSTEMD_PAGER or
 * $PAGER names the pager; if it is empty or "cat", or the terminal is dumb, there is none. Under
 * sudo, less is run without its commands that start other programs. Main thread.
 */

#include <stdbool.h>

/* Allows pager_open() to start a pager. Without this call, it does nothing. */
void pager_allow(void);

/*
 * Starts the pager if it is allowed, not running yet, and standard output is a terminal. From then
 * on standard output is a pipe to it, and the functions of term.h tell of the terminal still. If no
 * pager can be run, output goes to the terminal.
 */
void pager_open(void);

/* True if standard output goes to a pager. */
bool pager_is_open(void);

/* True if the user has left the pager before it had all of the output. */
bool pager_was_left(void);

/* Notes that a write failed because the pager has ended. */
void pager_note_left(void);

/* Waits until the user has left the pager. Standard output has to be closed before. */
void pager_wait(void);

#endif

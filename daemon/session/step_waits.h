/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_STEP_WAITS_H
#define STACKD_DAEMON_SESSION_STEP_WAITS_H

/*
 * Finds waits for a program's own lock that are made in steps: MariaDB, for one, waits for a row
 * for a second at a time, and looks between two steps whether it has waited for long enough. Such
 * waits go to window->held with the beginning of the first one. Used on the resolver's thread only,
 * because the reasons of waits need the names of functions.
 */

struct step_waits;
struct window;

/* Returns an empty memory of the threads that wait in steps; NULL when out of memory. */
struct step_waits *step_waits_new(void);
struct step_waits *step_waits_free(struct step_waits *steps);

/*
 * Adds to window->held the waits that go on at the end of the window and that are not their
 * thread's first step. Looks at the windows of the always-on session only, which have to come in
 * their order. The window must not be in the history yet.
 */
void step_waits_find(struct step_waits *steps, struct window *window);

#endif

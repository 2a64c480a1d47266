/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_HELD_WAITS_H
#define STACKD_DAEMON_SESSION_HELD_WAITS_H

/*
 * Finds out, at the end of each window, what its long waits are for and who holds it, so that the
 * past has it, too. A wait that goes on is looked up again, the less often the older it is, as
 * others may hold what it is for by then. Used on the resolver's thread only, because the reasons
 * of waits need the names of functions; that thread is held up for at most
 * HOLDER_WINDOW_DEADLINE_NS at a time, and for a tenth of its time on average. The look-ups take 1
 * % of a CPU.
 */

struct held_waits;
struct window;

/* Returns an empty memory of what was looked up; NULL when out of memory. */
struct held_waits *held_waits_new(void);
struct held_waits *held_waits_free(struct held_waits *held);

/*
 * Sets window->held to the waits that went on at the end of the window for HELD_WAIT_NS or longer,
 * and of which something is known: those for locks and, after these, the longest, as far as
 * HELD_WAITS_MAX allows. Looks up HOLDER_LOOKUPS of them at most. Leaves out those that are idle,
 * but for waits for a child of threads that hold what others wait for.
 * The window must not be in the history yet.
 */
void held_waits_find(struct held_waits *held, struct window *window);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_QUERY_TURNS_H
#define STACKD_QUERY_TURNS_H

/*
 * Turns: only a few queries read windows at the same time, and the others wait. The number is small
 * because each query may use as much memory as [query] max_memory allows, and a little more. A user
 * other than root never has all turns, so that one user's long questions do not keep others
 * waiting. Any thread may call these functions.
 */
#include "daemon/query/query.h"

/* Waits for a turn. Returns 0, or -ECANCELED if the client has hung up meanwhile. */
int turn_wait(const struct query_peer *peer);

/* Ends the turn of the same peer's turn_wait(). */
void turn_end(const struct query_peer *peer);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_CELL_H
#define STACKD_CLIENT_RENDER_CELL_H

/*
 * Shortens what a table says about a wait so that the words that matter most stay. Each function
 * returns a copy of the text that takes at most `columns`, which the caller frees. Constant; any
 * thread.
 */

#include <stdbool.h>
#include <stddef.h>

/* True if an object is a connection, as "TCP 10.0.0.1:17 to 10.0.0.2:80, state, figures". */
bool object_is_connection(const char *object);

/*
 * Shortens a reason with its object, as "S flock /var/lib/x/y.lock". The reason stays whole, of a
 * path its last part does, and of a connection its other end.
 */
char *cell_fit_why(const char *text, size_t columns);

/*
 * Shortens who holds what a thread waits for, as "longest held by sh(17) and 2 more". The first
 * name and its id stay.
 */
char *cell_fit_holder(const char *text, size_t columns);

#endif

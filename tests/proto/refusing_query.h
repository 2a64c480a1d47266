/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_REFUSING_QUERY_H
#define STACKD_TESTS_REFUSING_QUERY_H

/*
 * Queries that a double of daemon/query/ does not have: each method of io.stackd is refused, and
 * a session that was started does nothing. The symbols are weak: a double defines what it needs.
 */

struct wire_error;

/* Fills the error that all methods here are refused with. Returns its errno. */
int query_refuse(struct wire_error *error);

#endif

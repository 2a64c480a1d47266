/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_ALIAS_RANK_H
#define STACKD_DAEMON_SYMBOL_ALIAS_RANK_H

/*
 * Chooses which of several names of one address is shown. The order does not depend on the order in
 * the file, so a function has the same name everywhere. No state, any thread.
 */

#include <stdbool.h>

/*
 * Returns a negative number when a is the better name, a positive one when b is, 0 only for equal
 * names.
 */
int alias_rank_compare(const char *a, bool a_is_global, const char *b, bool b_is_global);

#endif

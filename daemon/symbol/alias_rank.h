/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_ALIAS_RANK_H
#define STACKD_DAEMON_SYMBOL_ALIAS_RANK_H

/*
 * Chooses which of several names of one address is shown. The choice does not depend on the order
 * of the names in the file, so a function is shown by the same name everywhere. No state; any
 * thread.
 */

#include <stdbool.h>

/*
 * Compares two names of one address. Returns a negative number if `a` is to be shown, a positive
 * number if `b` is to be shown, and 0 only if the names are equal.
 */
int alias_rank_compare(const char *a, bool a_is_global, const char *b, bool b_is_global);

#endif

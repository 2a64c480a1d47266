/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_ALIAS_RANK_H
#define STACKD_DAEMON_SYMBOL_ALIAS_RANK_H

/*
 * Which of several names of one address is shown: in go two names, out comes an order that does
 * not depend on the order in the file, so that a function has one name everywhere. Stateless.
 */

#include <stdbool.h>

/* Negative when a is the better name, positive when b is, 0 only for equal names. */
int alias_rank_compare(const char *a, bool a_is_global, const char *b, bool b_is_global);

#endif

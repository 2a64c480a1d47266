/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_FAULT_H
#define STACKD_TESTS_FAULT_H

/*
 * Makes library calls of the code under test fail. The linker's --wrap leads them through
 * fault_wrap.c, which also works under sanitizers. Affects all threads but those that are exempt.
 */

#include <stdbool.h>

enum fault_kind {
	FAULT_MEMORY, /* malloc, calloc, realloc, strdup, strndup, vasprintf: ENOMEM */
	FAULT_ACCEPT, /* accept4: EMFILE */
};

/* Has `times` calls of a kind fail, beginning with the nth from now (the next one is 1). */
void fault_arm(enum fault_kind kind, long nth, long times);

/* Ends the failures. Returns how many there were. */
long fault_disarm(void);

/* Exempts the thread that calls this. */
void fault_exempt(void);

#endif

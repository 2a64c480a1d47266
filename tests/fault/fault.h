/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_FAULT_H
#define STACKD_TESTS_FAULT_H

/*
 * Calls of ours that fail when told to: the linker's --wrap leads them through fault_wrap.c, so
 * that it works under sanitizers too. Any thread but those that are exempt.
 */

#include <stdbool.h>

enum fault_kind {
	FAULT_MEMORY, /* malloc, calloc, realloc, strdup, strndup, vasprintf: ENOMEM */
	FAULT_ACCEPT, /* accept4: EMFILE */
};

/* From now on the nth call of a kind fails (the first is 1), and `times` in a row from there. */
void fault_arm(enum fault_kind kind, long nth, long times);

/* Nothing fails any more; how many did. */
long fault_disarm(void);

/* The thread that calls this is spared. */
void fault_exempt(void);

#endif

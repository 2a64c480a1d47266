/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_WAIT_CLASS_H
#define STACKD_COMMON_WAIT_CLASS_H

/*
 * Sorts the reasons for which threads wait into a few classes, for metrics, where each combination
 * of labels costs a time series. Constant tables; any thread.
 */

#include "common/wait_reason.h"

/* X(NAME, word) for each class, in the order of stackctl(1). The words are on the wire. */
#define WAIT_CLASSES(X)       \
	X(IDLE, "idle")       \
	X(LOCK, "lock")       \
	X(IO, "io")           \
	X(NETWORK, "network") \
	X(IPC, "ipc")         \
	X(EVENTS, "events")   \
	X(SLEEP, "sleep")     \
	X(MEMORY, "memory")   \
	X(OTHER, "other")     \
	X(SHORT, "short")

enum wait_class {
#define WAIT_CLASS_MEMBER(name, word) WAIT_CLASS_##name,
	WAIT_CLASSES(WAIT_CLASS_MEMBER)
#undef WAIT_CLASS_MEMBER
		WAIT_CLASS_N,
};

/* Returns the word of a class, such as "lock". */
const char *wait_class_word(enum wait_class class);

/*
 * Returns the class of a reason. It is never WAIT_CLASS_IDLE, which depends on more than the
 * reason, nor WAIT_CLASS_SHORT, which is for waits that have no reason.
 */
enum wait_class wait_class_of(enum wait_reason reason);

#endif

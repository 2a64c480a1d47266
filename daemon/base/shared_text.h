/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_SHARED_TEXT_H
#define STACKD_DAEMON_BASE_SHARED_TEXT_H

/*
 * A string with a count of references, for long strings that many structs have. Immutable; any
 * thread.
 */

/* Makes a copy of the string with one reference, which the caller owns. NULL when out of memory. */
const char *shared_text_new(const char *text);

/* These take a string of shared_text_new(). shared_text_unref() allows NULL. */
const char *shared_text_ref(const char *text);
void shared_text_unref(const char *text);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_BASE_MESSAGE_H
#define STACKD_CLIENT_BASE_MESSAGE_H

/*
 * Prints messages for the person who typed the command: errors, and notes beside an answer. Any
 * thread.
 */

#include <stddef.h>

/*
 * Prints "stackctl: " and the message as one line on standard error. Escapes control characters, as
 * the message may contain text from the daemon or the name of a file. Ends the program when memory
 * runs out.
 */
void print_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns how many messages were printed. */
size_t message_count(void);

#endif

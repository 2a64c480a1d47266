/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_LOG_H
#define STACKD_DAEMON_BASE_LOG_H

/*
 * Logs messages of the daemon: to the journal if stderr is connected to it, otherwise as lines on
 * stderr. Any thread.
 */

#include <stdbool.h>
#include <syslog.h>

enum log_target { LOG_TARGET_AUTO, LOG_TARGET_STDERR, LOG_TARGET_JOURNAL };

/*
 * Sets the target of messages, and the least urgent priority (LOG_ERR..LOG_DEBUG) that is logged.
 */
void log_setup(enum log_target target, int max_priority);

/*
 * Values of the journal field MESSAGE_ID=. Messages about a change of the daemon's state have them,
 * so that such messages can be found in the journal; see stackd(8).
 */
#define LOG_ID_RECORDING "f4b95029720840e3a25f77edd94f3998"
#define LOG_ID_PROBE_OFF "15c5cd289d1d4f9b9ccc8e2c1a99951d"
#define LOG_ID_STOPPING	 "451f36ee4c4944dcad8501a09dea6dc6"
#define LOG_ID_RELOADED	 "10171850be5e4ab386db0e74372e8c4d"

enum { LOG_MAX_FIELDS = 8 };

/*
 * Logs a message. In the journal, the message has the field MESSAGE_ID= with the value `id`, and
 * the fields in `fields`: at most LOG_MAX_FIELDS strings "NAME=value", then NULL. `id` and `fields`
 * may be NULL.
 */
void log_event(int priority, const char *id, const char *const *fields, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * Logs "<text>: <strerror(-r)>" at LOG_ERR. r is a negative errno, which is returned. Does not
 * change errno.
 */
int log_err(int r, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)	 log_event(LOG_ERR, NULL, NULL, __VA_ARGS__)
#define log_warning(...) log_event(LOG_WARNING, NULL, NULL, __VA_ARGS__)
#define log_notice(...)	 log_event(LOG_NOTICE, NULL, NULL, __VA_ARGS__)
#define log_info(...)	 log_event(LOG_INFO, NULL, NULL, __VA_ARGS__)
#define log_debug(...)	 log_event(LOG_DEBUG, NULL, NULL, __VA_ARGS__)

#endif

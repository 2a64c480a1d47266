/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_LOG_H
#define STACKD_DAEMON_LOG_H

/*
 * Messages of the daemon: in go a priority and text, out goes a record to the journal (when
 * stderr is connected to it) or a line to stderr. Stateless for the caller; any thread.
 */

#include <stdbool.h>
#include <syslog.h>

enum log_target { LOG_TARGET_AUTO, LOG_TARGET_STDERR, LOG_TARGET_JOURNAL };

/* Chooses where messages go and the least urgent priority (LOG_ERR..LOG_DEBUG) that is shown. */
void log_setup(enum log_target target, int max_priority);

void log_msg(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Logs "<text>: <strerror(-r)>" at LOG_ERR and returns r, a negative errno. errno is kept. */
int log_err(int r, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_msg(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_msg(LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_msg(LOG_NOTICE, __VA_ARGS__)
#define log_info(...) log_msg(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_msg(LOG_DEBUG, __VA_ARGS__)

#endif

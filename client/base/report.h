/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_BASE_REPORT_H
#define STACKD_CLIENT_BASE_REPORT_H

/*
 * One line on standard error, "stackctl: ...", for the person who typed the command. Control
 * bytes in it are escaped: it may hold what a daemon or a file name said.
 */

void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

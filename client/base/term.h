/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_BASE_TERM_H
#define STACKD_CLIENT_BASE_TERM_H

/*
 * Text for a terminal: its size and colours, names with their invisible characters escaped, the
 * columns that a text takes, local times. Texts returned are malloc'ed and the caller's; the
 * program ends when memory runs out. Main thread.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TERM_WIDTH_DEFAULT = 80, TERM_WIDTH_MIN = 40, TERM_LINES_DEFAULT = 24, TERM_TIME_MAX = 64 };

/* Gets the present size of the terminal fd; TERM_LINES_DEFAULT and TERM_WIDTH_DEFAULT if unknown.
 */
void term_size(int fd, size_t *lines_out, size_t *columns_out);

/*
 * Returns the columns of the terminal fd, at least TERM_WIDTH_MIN; TERM_WIDTH_DEFAULT if fd is no
 * terminal.
 */
int term_width(int fd);

/* True if fd is a terminal, TERM is not "dumb" and NO_COLOR is not set. */
bool term_has_colour(int fd);

/*
 * Returns the name with control characters, other invisible characters and bytes that are not UTF-8
 * written as \x1b or \u202e. Backslashes are not escaped: names of units are full of them.
 */
char *name_escape(const char *name);

/* Returns the columns that an escaped text takes on a terminal. */
size_t text_columns(const char *text);

/* Returns the text, with ... in place of its middle if it is wider than that many columns. */
char *text_fit(const char *text, size_t columns);

/* Returns a function's name without arguments, template arguments and Rust's hash. */
char *name_shorten(const char *name);

enum time_style {
	TIME_FULL,	/* 2026-03-09 14:00:00 CET */
	TIME_DAY,	/* 2026-03-09 14:00:00 */
	TIME_CLOCK,	/* 14:00:00 */
	TIME_MILLI,	/* 14:00:00.123 */
	TIME_DAY_MILLI, /* 2026-03-09 14:00:00.123 */
};

/* Writes a time, in ns since 1970, as local time. */
void time_format(int64_t ns, enum time_style style, char text[static TERM_TIME_MAX]);

/* True if both times, in ns since 1970, are on the same local day. */
bool time_same_day(int64_t a, int64_t b);

/* Returns p; ends the program with a message if p is NULL, as memory has run out. */
void *must(void *p);

/* Returns the formatted text, malloc'ed; ends the program as must() does. */
char *must_format(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_BASE_TERM_H
#define STACKD_CLIENT_BASE_TERM_H

/*
 * What text has to know of a terminal: its width, whether it may be coloured, how to show a
 * name that somebody else chose, how many columns it takes. Main thread.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TERM_WIDTH_DEFAULT = 80, TERM_WIDTH_MIN = 40, TERM_LINES_DEFAULT = 24, TERM_TIME_MAX = 64 };

/* Of the terminal fd is, as it is now; TERM_LINES_DEFAULT and TERM_WIDTH_DEFAULT when unknown. */
void term_size(int fd, size_t *lines_out, size_t *columns_out);

/* Columns of the terminal fd is; TERM_WIDTH_DEFAULT when it is none, TERM_WIDTH_MIN at least. */
int term_width(int fd);

/* fd is a terminal, TERM is not "dumb" and NO_COLOR is not set. */
bool term_has_colour(int fd);

/*
 * The name with control and other invisible characters, and what is not UTF-8, shown as \x1b or
 * \u202e; malloc'ed. Backslashes stay: unit names are full of them.
 */
char *name_escape(const char *name);

/* Columns of an escaped text. */
size_t text_columns(const char *text);

/* The text, its middle replaced by ... where it is wider than that; malloc'ed. */
char *text_fit(const char *text, size_t columns);

/* A function's name without arguments, template arguments and hash; malloc'ed. */
char *name_shorten(const char *name);

enum time_style {
	TIME_FULL,	/* 2026-03-09 14:00:00 CET */
	TIME_DAY,	/* 2026-03-09 14:00:00 */
	TIME_CLOCK,	/* 14:00:00 */
	TIME_MILLI,	/* 14:00:00.123 */
	TIME_DAY_MILLI, /* 2026-03-09 14:00:00.123 */
};

/* Local time. */
void time_format(int64_t ns, enum time_style style, char text[static TERM_TIME_MAX]);

/* Both on the same local day. */
bool time_same_day(int64_t a, int64_t b);

/* Stops the program when there is no memory; nothing else would be left to do. */
void *must(void *p);

/* What the format says, malloc'ed; stops the program as must() does. */
char *must_format(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_BASE_TERM_H
#define STACKD_CLIENT_BASE_TERM_H

/*
 * Text for a terminal: the terminal's size and colours, names with their invisible characters
 * escaped, the number of columns that a text takes, local times. Returned texts are malloc'ed and
 * owned by the caller; the program ends when memory runs out. Main thread.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TERM_WIDTH_DEFAULT = 80, TERM_WIDTH_MIN = 40, TERM_LINES_DEFAULT = 24, TERM_TIME_MAX = 64 };

/*
 * Makes the functions below tell of the terminal that standard output is now, also if standard
 * output becomes a pipe to a pager afterwards.
 */
void term_keep_stdout(void);

/* True if the file is a terminal. */
bool term_is_terminal(int fd);

/*
 * Stores the present size of the terminal fd, or TERM_LINES_DEFAULT and TERM_WIDTH_DEFAULT if it is
 * not known.
 */
void term_size(int fd, size_t *lines_out, size_t *columns_out);

/*
 * Returns the width of the terminal fd in columns, at least TERM_WIDTH_MIN; TERM_WIDTH_DEFAULT if
 * fd is not a terminal.
 */
int term_width(int fd);

/* True if LC_ALL, LC_CTYPE or LANG, the first one that is set, asks for UTF-8. */
bool term_has_utf8(void);

/*
 * True if fd is a terminal that knows the escape sequences which clear a line or the screen: TERM
 * is set, and is not "dumb".
 */
bool term_has_escapes(int fd);

/* True if term_has_escapes() is, and NO_COLOR is not set. */
bool term_has_colour(int fd);

/*
 * Returns a copy of the name in which control characters, other invisible characters and bytes that
 * are not UTF-8 are written as escapes such as \x1b or \u202e. Backslashes are not escaped, because
 * names of systemd units often contain them.
 */
char *name_escape(const char *name);

/* Returns how many columns a text takes on a terminal. The text has no control characters. */
size_t text_columns(const char *text);

/* Returns a copy of the text; if it is wider than `columns`, "..." stands for its middle. */
char *text_fit(const char *text, size_t columns);

/* Returns a copy of the beginning of the text, as much as fits into `columns`. */
char *text_begin(const char *text, size_t columns);

/*
 * Does what text_fit() does, but if the text ends with a bracket, as in "mysqld(4242)", shortens
 * what is before it, if there is room for that. In "mysqld(4242)/connection", shortens the first
 * name rather than the second, so that the id of the process stays.
 */
char *text_fit_tail(const char *text, size_t columns);

/*
 * Returns a function's name without its arguments, its template arguments and the hash that Rust
 * adds.
 */
char *name_shorten(const char *name);

/* How time_format() prints a time; each comment shows an example. */
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

/* Returns p. If p is NULL because memory has run out, ends the program with a message. */
void *must(void *p);

/* These return the formatted text, malloc'ed; they end the program when memory runs out. */
char *must_format(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));
char *must_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

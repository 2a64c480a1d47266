/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_PAGE_H
#define STACKD_CLIENT_RENDER_PAGE_H

/*
 * Prints text for people in lines no wider than the page, with a hanging indentation and, on a
 * terminal, colours. A write error sets the stream's error flag, which the stream's owner checks.
 * Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct page {
	FILE *out;
	size_t width; /* the width of the page, in columns */
	bool has_colour;
	bool cuts_names; /* shortens a long name so that it fits in a line; true on a terminal */
};

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_WARN, STYLE_DIM };

/*
 * Prints a paragraph: the label, padded to `indent` columns, then the text. Further lines are
 * indented by `indent` columns, too. Lines break at spaces; a word longer than a line is broken.
 * The caller has to escape names in the text.
 */
void page_wrap(const struct page *page, enum style style, const char *label, size_t indent,
	       const char *format, ...) __attribute__((format(printf, 5, 6)));

/*
 * Prints `left` at the left edge and `right` at the right edge of one line. On a terminal `left` is
 * shortened to fit.
 */
void page_pair(const struct page *page, enum style style, const char *left, const char *right);

/*
 * Prints a prefix and a name on one line. On a terminal, "..." stands for the middle of a name that
 * is too long.
 */
void page_name(const struct page *page, enum style style, size_t indent, const char *prefix,
	       const char *name);

/* Prints a text as one line, as it is. */
void page_line(const struct page *page, enum style style, const char *text);

/* Prints an empty line. */
void page_break(const struct page *page);

/* Returns a page that prints to standard output and is as wide as the terminal. */
struct page page_of_stdout(void);

/*
 * Returns a number as "1,234,567". count_text(), ns_text() and share_text() share eight buffers:
 * the text is overwritten by the eighth later call of any of them.
 */
const char *count_text(long long n);

/*
 * Returns a length of time, given in ns, as "1.2 s". The text is overwritten like that of
 * count_text().
 */
const char *ns_text(long long ns);

/*
 * Writes an average number of threads or CPUs, such as "0.04", "1.6" or "48". It is the quotient of
 * `ns`, the sum of their times, and `length`, the length of the range. Both are in ns.
 */
void average_text(int64_t ns, int64_t length, char text[static 32]);

/*
 * Returns part / whole as a percentage, such as "31 %" or "<1 %"; "-" if whole is 0. The text is
 * overwritten like that of count_text().
 */
const char *share_text(long long part, long long whole);

#endif

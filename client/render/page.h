/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_PAGE_H
#define STACKD_CLIENT_RENDER_PAGE_H

/*
 * Prints text for a person in lines no wider than the page, with a hanging indentation and, on a
 * terminal, colours. Write errors stay in the stream, whose owner checks them. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct page {
	FILE *out;
	size_t width; /* in columns */
	bool has_colour;
	bool cuts_names; /* long names are shortened to fit: the page is a terminal */
};

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_WARN, STYLE_DIM };

/*
 * Prints a paragraph: the label, padded to `indent` columns, then the text, whose further lines are
 * indented as far. Lines break at spaces, or within a word longer than a line. Names in the text
 * have to be escaped.
 */
void page_wrap(const struct page *page, enum style style, const char *label, size_t indent,
	       const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Prints one line with `right` at the right edge; `left` is shortened on a terminal. */
void page_pair(const struct page *page, enum style style, const char *left, const char *right);

/* Prints a prefix and a name on one line; on a terminal, a long name loses its middle. */
void page_name(const struct page *page, enum style style, size_t indent, const char *prefix,
	       const char *name);

/* Prints an empty line. */
void page_break(const struct page *page);

/* Returns standard output as a page, as wide as the terminal. */
struct page page_of_stdout(void);

/* Returns "1,234,567"; the text is overwritten by the eighth call after this one. */
const char *count_text(long long n);

/* Returns "1.2 s"; the text is overwritten like that of count_text(). */
const char *ns_text(long long ns);

/* Writes how many threads or CPUs ns stand for on average over length ns: "0.04", "1.6", "48". */
void average_text(int64_t ns, int64_t length, char text[static 32]);

/* Returns part of whole as "31 %" or "<1 %", "-" if whole is 0; overwritten like count_text(). */
const char *share_text(long long part, long long whole);

#endif

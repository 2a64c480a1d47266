/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_PAGE_H
#define STACKD_CLIENT_RENDER_PAGE_H

/*
 * Lines for a person: text in, lines no wider than the page out, with a hanging indentation and,
 * on a terminal, colour. Write errors stay in the stream for whoever closes it. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct page {
	FILE *out;
	size_t width;
	bool has_colour;
	bool cuts_names; /* a terminal: nothing is ever wider than it */
};

enum style { STYLE_PLAIN, STYLE_BOLD, STYLE_WARN, STYLE_DIM };

/*
 * A paragraph: the label, padded to indent columns, then the text, whose further lines are
 * indented as far. Breaks at spaces; a longer word is broken where the line ends. Names in it
 * have to be escaped.
 */
void page_wrap(const struct page *page, enum style style, const char *label, size_t indent,
	       const char *format, ...) __attribute__((format(printf, 5, 6)));

/* One line: left, and right at the right edge; left is cut on a page that cuts. */
void page_pair(const struct page *page, enum style style, const char *left, const char *right);

/* One line that is not wrapped: a prefix and a name, cut in its middle on a page that cuts. */
void page_name(const struct page *page, enum style style, size_t indent, const char *prefix,
	       const char *name);

void page_break(const struct page *page);

/* Returns standard output as a page, as wide as the terminal. */
struct page page_of_stdout(void);

/* 1,234,567; the text is good until the eighth call after. */
const char *count_text(long long n);

/* The same ring of texts, for durations. */
const char *ns_text(long long ns);

/* Writes how many threads or CPUs ns stand for on average over length ns: "0.04", "1.6", "48". */
void average_text(int64_t ns, int64_t length, char text[static 32]);

/* part of whole as "31 %", "<1 %" for a little and "-" of nothing. */
const char *share_text(long long part, long long whole);

#endif

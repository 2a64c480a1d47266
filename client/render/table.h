/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_TABLE_H
#define STACKD_CLIENT_RENDER_TABLE_H

/*
 * Prints a table with one line for each row. On a terminal, no line is wider than the page: columns
 * that matter less are left out, and long names are shortened. Elsewhere nothing is shortened. Main
 * thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "client/render/page.h"

enum { TABLE_COLUMNS_MAX = 12 };

struct table_column {
	const char *head;
	/* the least width to which the column is shortened; 0: it holds figures, and is not */
	size_t least;
	/* the column with the greatest number is left out first; 0: it is never left out */
	unsigned drop;
	/* returns a text shortened to a width; NULL: text_fit_tail() does that */
	char *(*fit)(const char *text, size_t columns);
};

struct table_row {
	enum style style;
	/* what the columns have, malloc'ed and escaped; NULL: nothing */
	char *cells[TABLE_COLUMNS_MAX];
};

struct table {
	const struct table_column *columns;
	size_t n_columns;
	struct table_row *rows;
	size_t n, capacity;
};

/* Makes an empty table, which borrows the columns. */
void table_init(struct table *table, const struct table_column *columns, size_t n_columns);
void table_fini(struct table *table);

/* Appends a row without cells. The pointer is valid until the next call. */
struct table_row *table_add(struct table *table, enum style style);

/*
 * Prints the rows, in reverse order if `reverse` is true, and above them the heads of the columns
 * if `with_head` is true. A column without anything in any row is left out.
 */
void table_print(const struct table *table, const struct page *page, bool with_head, bool reverse);

/*
 * Writes a time of `ns` nanoseconds with three digits and a unit, as "1.25ms". If is_ms is true,
 * writes it in ms without a unit, as "1.250". Returns the text.
 */
const char *io_figure(int64_t ns, bool is_ms, char text[static 32]);

/*
 * Returns a length of time, in ns, as at most six characters, such as "3.49ms", "31min" or "2.5d".
 * The text is malloc'ed. `about` and `more` are put before and after it.
 */
char *table_time(const char *about, int64_t ns, const char *more);

/*
 * Returns how many megabytes a second these bytes are, such as "2.4", malloc'ed. NULL if there are
 * none.
 */
char *table_rate(int64_t bytes, int64_t length_ns);

#endif

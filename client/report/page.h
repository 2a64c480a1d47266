/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_REPORT_PAGE_H
#define STACKD_CLIENT_REPORT_PAGE_H

/*
 * Writes a report as a page: one file of HTML with its style, its scripts and its data, which loads
 * nothing and sends nothing. A write error sets the stream's error flag. Main thread.
 */

#include <stdint.h>
#include <stdio.h>

#include "client/report/data.h"

/* The texts of the head of the page, which are not escaped, and its times. */
struct report_head {
	const char *host;
	const char *filter; /* the words of the command line that select threads; "" if none */
	int64_t made;	    /* when the report was made; ns since 1970 */
	int64_t asked_start, asked_end;
};

/* What was left out of a page to keep it within its size. */
struct report_cut {
	size_t rows;   /* number of rows */
	int64_t total; /* their time in ns */
	int64_t part;  /* the same in millionths of the time of all rows */
};

/*
 * Writes the page to `out`, with as many rows as fit into max_size bytes, the largest first. The
 * rest of each column is one row. Returns 0, or -EFBIG if even a page without rows is larger.
 */
int report_page_write(struct report_data *data, const struct report_head *head, int64_t max_size,
		      FILE *out, struct report_cut *cut_out);

#endif

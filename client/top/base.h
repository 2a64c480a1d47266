/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_TOP_BASE_H
#define STACKD_CLIENT_TOP_BASE_H

/*
 * The base of `stackctl top`: the times of the rows of an answer that was marked, with which those
 * of later answers to the same question are compared. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "client/top/rows.h"
#include "client/top/state.h"

struct top_base;

/*
 * Returns the times of the rows of an answer, or NULL if there are none. `length` is how long they
 * cover, in ns. The answer and the rows are no longer needed afterwards.
 */
struct top_base *top_base_new(const struct top_rows *rows, const struct top_answer *answer,
			      int64_t length);

/* Frees the base, which may be NULL. Returns NULL. */
struct top_base *top_base_free(struct top_base *base);

/* True if the rows of an answer to what the state asks for are of the same kind as the base's. */
bool top_base_fits(const struct top_base *base, const struct top_state *state);

/*
 * Returns by how much the row's time differs from that of the base, which is scaled to the same
 * length, in ns.
 */
int64_t top_base_change(const struct top_base *base, const struct top_row *row, int64_t length);

#endif

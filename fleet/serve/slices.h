/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_SERVE_SLICES_H
#define STACKD_FLEET_SERVE_SLICES_H

/*
 * Divides the windows of a range into slices, as the daemon does for Snapshot's each_ns. Used by
 * the thread that makes an answer.
 */

#include <stddef.h>
#include <stdint.h>

#include "fleet/serve/headers.h"
#include "proto/wire.h"

/* Each slice takes some queries of each server: more slices than this would take minutes. */
enum { SLICES_MAX = 1000 };

struct fleet_slice {
	struct wire_span range;	  /* from the end of the slice before it on */
	struct wire_span middles; /* the windows whose middle lies in this span are in the slice */
};

struct fleet_slices {
	struct fleet_slice *v; /* malloc'ed; the newest slice first */
	size_t n;
	const char *table; /* of windows, for all slices */
};

/*
 * Divides the windows that count into slices of each_ns. 0 stands for a slice for each window, if
 * they are of one host, and otherwise for slices as long as most windows: those of several hosts do
 * not begin at the same times. No slice of several hosts is shorter than that, as it would lack
 * some of them. The caller frees out->v. Returns 0, -E2BIG if there are more than SLICES_MAX, or
 * -ENOMEM.
 */
int fleet_slices_make(const struct headers *headers, const struct header_question *range,
		      int64_t each_ns, struct fleet_slices *out);

#endif

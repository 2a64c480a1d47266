/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_PRESSURE_H
#define STACKD_CLIENT_RENDER_PRESSURE_H

/*
 * Prints the pressure (PSI) in the windows of an answer as text: for which share of the time tasks
 * stalled. Borrows the reply. A write error only sets the stream's error flag. Main thread.
 */

#include "client/render/render.h"

/*
 * Returns for which share of the time tasks stalled, and the units that stalled most, as one line.
 * The caller frees it.
 */
char *pressure_line(const struct wire_pressure *pressure);

/*
 * Prints the pressure of the host and the units with the most pressure as one paragraph; nothing if
 * `pressure` is NULL.
 */
void render_pressure(const struct view *view, const struct wire_pressure *pressure);

/* Prints what stackd reads of the pressure, and what is missing; nothing if `source` is NULL. */
void render_pressure_source(const struct page *page, const struct wire_pressure_source *source,
			    size_t indent);

#endif

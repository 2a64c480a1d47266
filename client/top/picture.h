/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_TOP_PICTURE_H
#define STACKD_CLIENT_TOP_PICTURE_H

/* Writes what `stackctl top` shows to a file, as a flame graph. Main thread. */

#include <stddef.h>

#include "client/top/ask.h"

/*
 * Writes the answer, which is one of TOP_PICTURE, to a new file in the current directory. The file
 * is named after the tab and the time that is shown. Puts into `message` (size bytes) which file
 * that is, or why there is none.
 */
void picture_write(const struct top_answer *answer, char *message, size_t size);

#endif

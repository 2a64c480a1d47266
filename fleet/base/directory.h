/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_BASE_DIRECTORY_H
#define STACKD_FLEET_BASE_DIRECTORY_H

/*
 * Makes the directory of a file, unless it is there. Its own directory has to be there. Returns 0
 * or a negative errno.
 */
int directory_make(const char *path);

#endif

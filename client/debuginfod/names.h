/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_DEBUGINFOD_NAMES_H
#define STACKD_CLIENT_DEBUGINFOD_NAMES_H

/*
 * Names of functions that the daemon could not name, from debug information that the servers in
 * $DEBUGINFOD_URLS have: first all addresses are noted, then the files are fetched one by one, then
 * the names can be looked up. The program ends when memory runs out. Main thread.
 */

#include <stdint.h>

struct names;

/*
 * Checks that files can be fetched: there is a library for it, and the user has named servers.
 * Returns NULL, or what is wrong and what would be right, as a text that the caller does not free.
 */
const char *names_check(void);

struct names *names_new(void);
void names_free(struct names *names);

/*
 * Notes that the name of the function at this ELF virtual address is wanted. `module` is the path
 * of the file, for messages. Does nothing if build_id is not the text of a build-id.
 */
void names_want(struct names *names, const char *build_id, const char *module, uint64_t address);

/*
 * Fetches files until all are there or timeout_ns is over. Prints on standard error which ones
 * could not be had, and why. Returns how long it took, in ns.
 */
int64_t names_fetch(struct names *names, int64_t timeout_ns);

/*
 * Returns the name of the function at an address that was noted, and sets *start_out to the
 * function's address; NULL if it is not known. The name lives as long as `names`.
 */
const char *names_find(const struct names *names, const char *build_id, uint64_t address,
		       uint64_t *start_out);

#endif

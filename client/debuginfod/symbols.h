/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_DEBUGINFOD_SYMBOLS_H
#define STACKD_CLIENT_DEBUGINFOD_SYMBOLS_H

/*
 * Finds functions in the symbol table of an ELF file that came from a server. Nothing in the file
 * is trusted: every position and size is checked, and only pieces of the file are in memory. No
 * state; any thread.
 */

#include <stddef.h>
#include <stdint.h>

enum {
	BUILD_ID_MAX = 64,	  /* maximum size of a build-id in bytes */
	FUNCTION_NAME_MAX = 1024, /* a function with a longer name gets none */
};

/* An address of which the function is asked for. */
struct symbol_query {
	uint64_t address; /* ELF virtual address */
	uint64_t start;	  /* address of the function */
	char *name;	  /* its name, malloc'ed; NULL: not found */
};

/*
 * Finds the functions of n addresses, which are in ascending order, in the file with the descriptor
 * fd. `start` and `name` are not set before the call. The file must have this build-id. Returns 0;
 * -EBADMSG, with *why_out saying what is wrong with the file; or another errno, with which reading
 * failed.
 */
int symbols_find(int fd, const uint8_t *build_id, size_t build_id_size,
		 struct symbol_query *queries, size_t n, const char **why_out);

#endif

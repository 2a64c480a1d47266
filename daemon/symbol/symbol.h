/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMBOL_H
#define STACKD_DAEMON_SYMBOL_SYMBOL_H

/*
 * The result of looking up one address in the symbols of the kernel or of a process. A plain value;
 * its strings belong to the table that was searched and live as long as that table.
 */

#include <stdbool.h>
#include <stdint.h>

struct code_file;

enum frame_kind {
	FRAME_NATIVE,
	FRAME_KERNEL,
	FRAME_JIT,
	FRAME_INTERPRETED,
	FRAME_PSEUDO,
};

struct symbol {
	enum frame_kind kind;
	uint64_t file_id;     /* hash that identifies the file or the kernel module; 0 if it is
				 unknown */
	uint64_t file_offset; /* for user code, an ELF virtual address; for the kernel and its
				 modules, an offset */
	const char *name;     /* name of the function; NULL if no function covers the address */
	uint64_t name_offset; /* offset of the address from the start of the function */
	bool is_signal;	    /* True: a signal handler returns to the address. The next frame of the
			       stack is then of a function that was interrupted by a signal, and did
			       not make a call. */
	const char *module; /* path of the file, "[vdso]" or name of the kernel module; NULL if
			       unknown */
	struct code_file *code; /* the ELF file that the address is in, which the table keeps
				   alive; NULL: none, or it has no build-id */
};

#endif

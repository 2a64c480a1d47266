/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMBOL_H
#define STACKD_DAEMON_SYMBOL_SYMBOL_H

/*
 * The result of looking one address up in the symbols of the kernel or of a process. A plain value;
 * the strings are borrowed from the table that answered and live as long as that is held.
 */

#include <stdbool.h>
#include <stdint.h>

enum frame_kind {
	FRAME_NATIVE,
	FRAME_KERNEL,
	FRAME_JIT,
	FRAME_INTERPRETED,
	FRAME_PSEUDO,
};

struct symbol {
	enum frame_kind kind;
	uint64_t file_id;     /* hash that identifies the file or kernel module; 0 where unknown */
	uint64_t file_offset; /* ELF virtual address, or offset from the start of the kernel or
				 kernel module */
	const char *name;     /* NULL where no function covers the address */
	uint64_t name_offset; /* offset from the start of that function */
	bool is_signal; /* a signal handler returns here: the frame below was interrupted, and did
			   not call */
	const char *module; /* path of the file, "[vdso]", kernel module; NULL where unknown */
};

#endif

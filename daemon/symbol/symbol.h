/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMBOL_H
#define STACKD_DAEMON_SYMBOL_SYMBOL_H

/*
 * One resolved address: what a lookup in the kernel's or a process's symbols gives. The strings
 * are borrowed from the table that answered and live as long as it is held. Plain value.
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
	uint64_t file_id;     /* hash of the file's or module's identity; 0 where unknown */
	uint64_t file_offset; /* ELF virtual address, or from the start of the kernel or module */
	const char *name;     /* NULL where nothing covers the address */
	uint64_t name_offset; /* from the start of that function */
	bool is_signal;	      /* a signal handler returns here: its caller called nothing */
	const char *module;   /* path of the file, "[vdso]", kernel module; NULL where unknown */
};

#endif

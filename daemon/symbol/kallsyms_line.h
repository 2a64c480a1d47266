/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_KALLSYMS_LINE_H
#define STACKD_DAEMON_SYMBOL_KALLSYMS_LINE_H

/*
 * Parses one line of /proc/kallsyms in place. The result points into the text, which the caller
 * owns; any thread. sscanf() would take most of the time of reading the file.
 */

#include <stdint.h>

#define KALLSYMS_PATH "/proc/kallsyms"

struct kallsyms_line {
	uint64_t address; /* 0 where the kernel hides it (kptr_restrict) */
	char type;	  /* as nm(1) has it */
	const char *name;
	const char *module; /* NULL: a symbol of the kernel itself */
};

/*
 * Parses "ffffffff81000000 T name", followed by "\t[module]" for a module; the newline is optional.
 * Writes NULs into the text. -EBADMSG when it is not such a line.
 */
int kallsyms_line_parse(char *text, struct kallsyms_line *out);

#endif

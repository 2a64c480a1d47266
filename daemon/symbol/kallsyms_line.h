/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_KALLSYMS_LINE_H
#define STACKD_DAEMON_SYMBOL_KALLSYMS_LINE_H

/*
 * Parses one line of /proc/kallsyms in place; sscanf() would take longer than all other work of
 * reading the file. The result points into the text, which the caller owns. Any thread.
 */

#include <stdint.h>

#define KALLSYMS_PATH "/proc/kallsyms"

struct kallsyms_line {
	uint64_t address; /* 0 if the kernel hides the address (kptr_restrict) */
	char type;	  /* type of the symbol, a letter as in the output of nm(1) */
	const char *name;
	const char *module; /* NULL if the symbol belongs to the kernel itself */
};

/*
 * Parses a line such as "ffffffff81000000 T name"; "\t[module]" follows if the symbol belongs to a
 * module. A newline at the end is optional. Writes NULs into the text. Returns -EBADMSG if the text
 * is not such a line.
 */
int kallsyms_line_parse(char *text, struct kallsyms_line *out);

#endif

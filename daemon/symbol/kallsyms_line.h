/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_KALLSYMS_LINE_H
#define STACKD_DAEMON_SYMBOL_KALLSYMS_LINE_H

/*
 * One line of /proc/kallsyms: in goes its text, out come its parts, which point into it. Owned by
 * the caller; any thread. There are so many lines that sscanf() would take most of the time.
 */

#include <stdint.h>

#define KALLSYMS_PATH "/proc/kallsyms"

struct kallsyms_line {
	uint64_t address; /* 0 where the kernel hides it */
	char type;	  /* as nm(1) has it */
	const char *name;
	const char *module; /* NULL: of the kernel itself */
};

/*
 * "ffffffff81000000 T name" and, of a module, "\t[module]", with or without the line's end. Cuts
 * the text into its parts. -EBADMSG when it is none.
 */
int kallsyms_line_parse(char *text, struct kallsyms_line *out);

#endif

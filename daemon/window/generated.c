/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/generated.h"

#include <stdbool.h>

/*
 * True for code without a name that was made at run time and lies in no file. (Code in a file that
 * is not ELF has the file's path as its module, and an offset in the file.)
 */
static bool is_nameless(const struct symbol *symbol)
{
	return symbol->kind == FRAME_JIT && !symbol->name && symbol->module &&
	       symbol->module[0] != '/';
}

size_t generated_merge(struct symbol *symbols, size_t n)
{
	bool is_last = false, is_this;
	size_t i, left = 0;

	for (i = 0; i < n; i++) {
		is_this = is_nameless(&symbols[i]);
		if (is_this && is_last)
			continue;
		symbols[left] = symbols[i];
		if (is_this)
			symbols[left] = (struct symbol){
				.kind = FRAME_JIT,
				.name = "[generated code]",
				.module = "[anon]",
			};
		left++;
		is_last = is_this;
	}
	return left;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "common/base.h"
#include "daemon/elf/go_pclntab.h"
#include "daemon/symbol/symtab_builder.h"

int symtab_builder_read_go(struct symtab_builder *builder, Elf *elf)
{
	struct go_pclntab go;
	bool is_go;
	int r = 0;

	if (!go_pclntab_open(elf, &go, &is_go))
		return 0;
	for (uint64_t i = 0; i < go.n_functions && !r; i++) {
		struct go_function function;
		struct symtab_candidate item = { 0 };
		const struct symtab_range *code;

		if (!go_pclntab_function(&go, i, &function))
			continue;
		code = symtab_builder_code(builder, function.start);
		if (!code)
			continue;
		item.start = function.start;
		item.end = function.end > code->end ? code->end : function.end;
		item.name = function.name;
		item.name_size = (uint16_t)function.name_size;
		r = symtab_builder_add(builder, &item);
	}
	return r;
}

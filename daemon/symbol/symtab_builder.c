/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/symtab_builder.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/search.h"

void symtab_builder_fini(struct symtab_builder *builder)
{
	for (size_t i = 0; i < builder->n_files; i++)
		elf_end(builder->files[i]);
	free(builder->unpacked);
	free(builder->code);
	free(builder->items);
}

const struct symtab_range *symtab_builder_code(const struct symtab_builder *builder,
					       uint64_t address)
{
	size_t n = SEARCH(builder->n_code, i, builder->code[i].start <= address);

	return n && address < builder->code[n - 1].end ? &builder->code[n - 1] : NULL;
}

int symtab_builder_add(struct symtab_builder *builder, const struct symtab_candidate *item)
{
	if (array_reserve(builder->items, builder->items_capacity, builder->n + 1))
		return -ENOMEM;
	builder->items[builder->n++] = *item;
	return 0;
}

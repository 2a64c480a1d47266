/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/symtab_builder.h"

#include <stdlib.h>

#include "common/array.h"

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
	size_t low = 0, high = builder->n_code;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (builder->code[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= builder->code[low - 1].end)
		return NULL;
	return &builder->code[low - 1];
}

int symtab_builder_add(struct symtab_builder *builder, const struct symtab_candidate *item)
{
	if (array_reserve(builder->items, builder->items_capacity, builder->n + 1))
		return -ENOMEM;
	builder->items[builder->n++] = *item;
	return 0;
}

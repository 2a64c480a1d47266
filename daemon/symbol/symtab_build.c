/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/symtab_build.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/symbol/alias_rank.h"
#include "daemon/symbol/symtab_builder.h"

/* Maximum size in bytes that is assumed for a function if the file gives no size. */
#define SIZELESS_BYTES_MAX 4096

static int name_compare(const struct symtab_candidate *x, const struct symtab_candidate *y)
{
	char a[ELF_NAME_BYTES_MAX], b[ELF_NAME_BYTES_MAX];

	memcpy(a, x->name, x->name_size);
	a[x->name_size] = '\0';
	memcpy(b, y->name, y->name_size);
	b[y->name_size] = '\0';
	return alias_rank_compare(a, x->is_global, b, y->is_global);
}

static int candidate_compare(const void *a, const void *b)
{
	const struct symtab_candidate *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

/*
 * Gives a size to functions that have a name but no size, which is common for functions in
 * assembler. The size is taken from the entry in .eh_frame that begins at the same address. If the
 * function is the code to which signal handlers return, this entry begins one byte earlier, because
 * unwinders look up the byte before a return address. In this case, the entry gets the function's
 * name.
 */
static void sizeless_from_frames(struct symtab_builder *builder)
{
	struct symtab_candidate *frame = NULL;

	for (size_t i = 0; i < builder->n; i++) {
		struct symtab_candidate *item = &builder->items[i];

		if (!item->name) {
			frame = item;
		} else if (frame && item->start == frame->start && item->end == item->start) {
			item->end = frame->end;
		} else if (frame && frame->is_signal && item->start == frame->start + 1) {
			frame->name = item->name;
			frame->name_size = item->name_size;
		}
	}
}

/*
 * Gives an end to functions that still have no size: the start of the next symbol, or the end of
 * the section. Drops a function without a size if it begins inside a function with a size. If the
 * file has only .dynsym, drops all functions without a size: .dynsym lacks many functions, whose
 * code would then be shown under the name of the function before.
 */
static void sizeless_extend(struct symtab_builder *builder)
{
	uint64_t next = UINT64_MAX, covered = 0;

	for (size_t i = builder->n; i-- > 0;) {
		struct symtab_candidate *item = &builder->items[i];
		uint64_t end = symtab_builder_code(builder, item->start)->end;

		/* The loop runs backwards, so `next` is set to the nearest start address above this
		 * function. */
		if (i + 1 < builder->n && builder->items[i + 1].start != item->start)
			next = builder->items[i + 1].start;
		if (item->end != item->start || !builder->has_symtab)
			continue;
		if (next < end)
			end = next;
		if (end - item->start > SIZELESS_BYTES_MAX)
			end = item->start + SIZELESS_BYTES_MAX;
		item->end = end;
		item->name_size |= UINT16_C(0x8000); /* marks the function as one without a size,
							which the loop below looks at */
	}
	for (size_t i = 0; i < builder->n; i++) {
		struct symtab_candidate *item = &builder->items[i];
		bool was_sizeless = item->name_size & 0x8000;

		item->name_size &= 0x7fff;
		if (was_sizeless && item->start < covered)
			item->end = item->start;
		else if (!was_sizeless && item->name && item->end > covered)
			covered = item->end;
	}
}

/* Drops functions without a name if they begin inside a function with a name. */
static void nameless_drop(struct symtab_builder *builder)
{
	uint64_t covered = 0;

	for (size_t i = 0; i < builder->n; i++) {
		struct symtab_candidate *item = &builder->items[i];

		if (item->name && item->end > covered)
			covered = item->end;
		else if (!item->name && item->start < covered)
			item->end = item->start;
	}
}

/*
 * Removes functions that were marked as dropped: their end equals their start. If several functions
 * have the same start and end, keeps only the one with the best name.
 */
static void candidates_reduce(struct symtab_builder *builder)
{
	size_t n = 0;

	for (size_t i = 0; i < builder->n; i++) {
		const struct symtab_candidate *item = &builder->items[i];
		struct symtab_candidate *last = n ? &builder->items[n - 1] : NULL;

		if (item->end == item->start || item->start - builder->items[0].start > UINT32_MAX)
			continue;
		if (!last || last->start != item->start || last->end != item->end)
			builder->items[n++] = *item;
		else if (item->name && (!last->name || name_compare(item, last) < 0))
			*last = *item;
	}
	builder->n = n;
}

/*
 * Copies the address ranges to which signal handlers return. A normal program has one such range.
 * Copies only the first few, because a hostile file may have any number of them.
 */
static void signals_take(const struct symtab_builder *builder, struct symtab_arrays *a)
{
	for (size_t i = 0; i < builder->n && a->n_signals < ARRAY_SIZE(a->signals); i++) {
		const struct symtab_candidate *item = &builder->items[i];

		if (item->is_signal)
			a->signals[a->n_signals++] =
				(struct symtab_range){ item->start, item->end };
	}
}

/*
 * For each function i, sets outer[i] to the index of the nearest earlier function whose end is
 * higher. If a search finds that function i does not contain the address, it goes on with function
 * outer[i]. Frees outer[] if no function is inside another.
 */
static void outer_link(struct symtab_arrays *a)
{
	bool is_needed = false;

	for (size_t i = 0; i < a->n; i++) {
		uint64_t end = (uint64_t)a->starts[i] + a->sizes[i];
		uint32_t outer = i ? (uint32_t)(i - 1) : SYMTAB_NO_OUTER;

		while (outer != SYMTAB_NO_OUTER &&
		       (uint64_t)a->starts[outer] + a->sizes[outer] <= end)
			outer = a->outer[outer];
		a->outer[i] = outer;
		is_needed |= outer != SYMTAB_NO_OUTER;
	}
	if (is_needed)
		return;
	free(a->outer);
	a->outer = NULL;
}

int symtab_arrays_fill(const struct symtab_candidate *items, size_t n, struct symtab_arrays *a)
{
	a->n = n;
	a->base = n ? items[0].start : 0;
	a->starts = reallocarray(NULL, a->n + 1, sizeof(*a->starts));
	a->sizes = reallocarray(NULL, a->n + 1, sizeof(*a->sizes));
	a->outer = reallocarray(NULL, a->n + 1, sizeof(*a->outer));
	if (!a->starts || !a->sizes || !a->outer)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint64_t size = items[i].end - items[i].start;

		a->starts[i] = (uint32_t)(items[i].start - a->base);
		a->sizes[i] = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
	}
	outer_link(a);
	return symtab_text_make(items, n, &a->names);
}

int symtab_collect(const struct elf_source *source, const struct symtab_aids *aids,
		   struct symtab_builder *builder, struct symtab_arrays *out)
{
	int r = symtab_builder_read(builder, source, aids);

	if (r < 0)
		return r;
	if (builder->n)
		qsort(builder->items, builder->n, sizeof(struct symtab_candidate),
		      candidate_compare);
	signals_take(builder, out);
	sizeless_from_frames(builder);
	sizeless_extend(builder);
	nameless_drop(builder);
	candidates_reduce(builder);
	return 0;
}

int symtab_build(const struct elf_source *source, const struct symtab_aids *aids,
		 struct symtab_arrays *out)
{
	_cleanup_(symtab_arrays_fini) struct symtab_arrays arrays = { 0 };
	_cleanup_(symtab_builder_fini) struct symtab_builder builder = { 0 };
	int r = symtab_collect(source, aids, &builder, &arrays);

	if (r)
		return r;
	r = symtab_arrays_fill(builder.items, builder.n, &arrays);
	if (r)
		return r;
	*out = arrays;
	arrays = (struct symtab_arrays){ 0 };
	return 0;
}

void symtab_arrays_fini(struct symtab_arrays *a)
{
	free(a->starts);
	free(a->sizes);
	free(a->outer);
	symtab_text_fini(&a->names);
	*a = (struct symtab_arrays){ 0 };
}

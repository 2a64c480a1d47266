/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/unwind_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/unwind_shared.h"
#include "daemon/unwind_rule.h"
#include "proto/base.h"

enum {
	PADDING_MAX = 15, /* bytes between functions that only align the next one */
	RULES_MAX = 256,  /* of one file; real ones have some dozen */
	CODE_FACTOR = 16, /* how often a section's bytes are run, at most, and a little more */
	CODE_SPARE = 1 << 16,
};

/* A function as found: its rows are n from first on. */
struct function {
	uint32_t start, end;
	uint32_t first, n;
	uint32_t number;
};

struct unwind_compiler {
	struct unwind_extent extent;
	size_t max_words;
	struct function *functions;
	size_t n_functions, allocated_functions;
	struct unwind_row *rows;
	size_t n_rows, allocated_rows;
	struct unwind_rule *rules;
	size_t n_rules;
	bool is_signal; /* of the function being run */
};

static uint32_t pages_of(const struct unwind_extent *extent)
{
	return (uint32_t)((extent->size + (1U << UNWIND_PAGE_SHIFT) - 1) >> UNWIND_PAGE_SHIFT);
}

int unwind_compiler_new(const struct unwind_extent *extent, size_t max_words,
			struct unwind_compiler **out)
{
	struct unwind_compiler *compiler;

	if (!extent->size || extent->size > UINT32_MAX || pages_of(extent) >= max_words ||
	    extent->base > UINT64_MAX - extent->size || max_words > UINT32_MAX)
		return -E2BIG;
	compiler = calloc(1, sizeof(*compiler));
	if (!compiler)
		return -ENOMEM;
	compiler->extent = *extent;
	compiler->max_words = max_words;
	compiler->rules = calloc(RULES_MAX, sizeof(*compiler->rules));
	if (!compiler->rules) {
		free(compiler);
		return -ENOMEM;
	}
	*out = compiler;
	return 0;
}

struct unwind_compiler *unwind_compiler_free(struct unwind_compiler *compiler)
{
	if (!compiler)
		return NULL;
	free(compiler->functions);
	free(compiler->rows);
	free(compiler->rules);
	free(compiler);
	return NULL;
}

void unwind_compiler_freep(struct unwind_compiler **compiler)
{
	unwind_compiler_free(*compiler);
}

/* Room for one more member. */
static int grow(void **items, size_t n, size_t *allocated, size_t size, size_t most)
{
	size_t more = *allocated ? *allocated * 2 : 1024;
	void *grown;

	if (n >= most)
		return -E2BIG;
	if (n < *allocated)
		return 0;
	grown = reallocarray(*items, more, size);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*allocated = more;
	return 0;
}

/* The number of an equal rule, or a new one; -1 when there are too many. */
static int rule_number(struct unwind_compiler *compiler, const struct unwind_rule *rule)
{
	size_t i;

	for (i = 0; i < compiler->n_rules; i++)
		if (memcmp(&compiler->rules[i], rule, sizeof(*rule)) == 0)
			return (int)i;
	if (i == RULES_MAX)
		return -1;
	compiler->rules[compiler->n_rules++] = *rule;
	return (int)i;
}

static bool rows_are_equal(const struct unwind_row *a, const struct unwind_row *b)
{
	return a->kind == b->kind && a->cfa == b->cfa && a->bp == b->bp;
}

static int row_add(struct unwind_compiler *compiler, const struct unwind_row *row)
{
	int r = grow((void **)&compiler->rows, compiler->n_rows, &compiler->allocated_rows,
		     sizeof(*compiler->rows), compiler->max_words);

	if (!r)
		compiler->rows[compiler->n_rows++] = *row;
	return r;
}

static int on_place(void *userdata, uint64_t address, const struct cfi_place *place)
{
	struct unwind_compiler *compiler = userdata;
	struct function *function = &compiler->functions[compiler->n_functions];
	struct unwind_row row = { .pc = (uint32_t)(address - compiler->extent.base) };
	struct unwind_rule rule;
	int number, r;

	if (!unwind_rule_make(place, compiler->is_signal, &row, &rule) && row.kind == UNWIND_RULE) {
		number = rule_number(compiler, &rule);
		row.kind = number < 0 ? UNWIND_INVALID : UNWIND_RULE;
		row.cfa = (int16_t)(number < 0 ? 0 : number);
	}
	if (function->n && rows_are_equal(&compiler->rows[compiler->n_rows - 1], &row))
		return 0;
	r = row_add(compiler, &row);
	if (!r)
		function->n++;
	return r;
}

struct adding {
	struct unwind_compiler *compiler;
	const struct cfi_section *section;
	uint64_t budget;
};

static int on_function(void *userdata, const struct cfi_function *found)
{
	struct adding *adding = userdata;
	struct unwind_compiler *compiler = adding->compiler;
	const struct unwind_extent *extent = &compiler->extent;
	struct function *function;
	int r;

	if (found->start < extent->base || found->end > extent->base + extent->size)
		return 0; /* no code of this file: dropped by the linker, or nonsense */
	r = grow((void **)&compiler->functions, compiler->n_functions,
		 &compiler->allocated_functions, sizeof(*compiler->functions), compiler->max_words);
	if (r)
		return r;
	function = &compiler->functions[compiler->n_functions];
	*function = (struct function){
		.start = (uint32_t)(found->start - extent->base),
		.end = (uint32_t)(found->end - extent->base),
		.first = (uint32_t)compiler->n_rows,
		.number = (uint32_t)compiler->n_functions,
	};
	compiler->is_signal = found->cie->is_signal;
	r = cfi_run(adding->section, found, &adding->budget, on_place, compiler);
	if (r == -EBADMSG) {
		/* What was said before the nonsense is not to be believed either. */
		struct unwind_row row = { .pc = function->start, .kind = UNWIND_INVALID };

		compiler->n_rows = function->first;
		function->n = 1;
		r = row_add(compiler, &row);
	}
	if (!r && function->n)
		compiler->n_functions++;
	return r;
}

int unwind_compiler_add(struct unwind_compiler *compiler, const struct cfi_section *section)
{
	struct adding adding = {
		.compiler = compiler,
		.section = section,
		.budget = (uint64_t)section->size * CODE_FACTOR + CODE_SPARE,
	};

	return cfi_for_each(section, on_function, &adding);
}

static int function_compare(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* The rows in their final order. */
struct output {
	const struct unwind_compiler *compiler;
	struct unwind_row *rows;
	size_t n, most;
};

static int output_add(struct output *out, const struct unwind_row *row)
{
	/* Later functions cut earlier ones short, whatever those say beyond. */
	while (out->n && out->rows[out->n - 1].pc >= row->pc)
		out->n--;
	if (out->n && rows_are_equal(&out->rows[out->n - 1], row))
		return 0;
	if (out->n == out->most)
		return -E2BIG;
	out->rows[out->n++] = *row;
	return 0;
}

/* Code that no function covers: nothing is known of it, except where the program starts. */
static int output_add_gap(struct output *out, uint32_t start, uint32_t end)
{
	const struct unwind_extent *extent = &out->compiler->extent;
	struct unwind_row row = { .pc = start, .kind = UNWIND_INVALID };
	uint64_t entry = extent->entry - extent->base;
	int r;

	if (extent->keeps_frame_pointers)
		row.kind = UNWIND_FRAME;
	r = output_add(out, &row);
	if (!r && extent->entry >= extent->base && entry >= start && entry < end) {
		row.pc = (uint32_t)entry;
		row.kind = UNWIND_END;
		r = output_add(out, &row);
	}
	return r;
}

static int output_fill(struct output *out)
{
	const struct unwind_compiler *compiler = out->compiler;
	uint32_t size = (uint32_t)compiler->extent.size, end = 0, i, j;
	int r = 0;

	for (i = 0; i < compiler->n_functions && !r; i++) {
		const struct function *function = &compiler->functions[i];

		if (i && function->start == compiler->functions[i - 1].start)
			continue;
		if (function->start > end && (!i || function->start - end > PADDING_MAX))
			r = output_add_gap(out, end, function->start);
		for (j = 0; j < function->n && !r; j++)
			r = output_add(out, &compiler->rows[function->first + j]);
		end = function->end;
	}
	if (!r && end < size)
		r = output_add_gap(out, end, size);
	return r;
}

static void pages_fill(struct unwind_page *pages, uint32_t n_pages, const struct unwind_row *rows,
		       uint32_t n_rows)
{
	uint32_t page, first = 0, next;

	for (page = 0; page < n_pages; page++) {
		uint64_t start = (uint64_t)page << UNWIND_PAGE_SHIFT;

		while (first + 1 < n_rows && rows[first + 1].pc <= start)
			first++;
		next = first + 1;
		while (next < n_rows && rows[next].pc < start + (1U << UNWIND_PAGE_SHIFT))
			next++;
		pages[page] = (struct unwind_page){ .first = first, .n = next - first };
		first = next - 1;
	}
}

int unwind_compiler_finish(struct unwind_compiler *compiler, struct unwind_rows *out)
{
	uint32_t n_pages = pages_of(&compiler->extent);
	/* A gap takes two rows at most. */
	size_t most = compiler->n_rows + 2 * compiler->n_functions + 2;
	struct output output = { .compiler = compiler, .most = most };
	size_t n_words = n_pages + most + 2 * compiler->n_rules;
	uint64_t *words, *fitted;
	int r;

	if (!compiler->n_functions && !compiler->extent.keeps_frame_pointers)
		return -ENODATA;
	words = calloc(n_words, sizeof(*words));
	if (!words)
		return -ENOMEM;
	if (compiler->n_functions)
		qsort(compiler->functions, compiler->n_functions, sizeof(*compiler->functions),
		      function_compare);
	output.rows = (struct unwind_row *)(words + n_pages);
	r = output_fill(&output);
	n_words = n_pages + output.n + 2 * compiler->n_rules;
	if (!r && n_words > compiler->max_words)
		r = -E2BIG;
	if (r) {
		free(words);
		return r;
	}
	pages_fill((struct unwind_page *)words, n_pages, output.rows, (uint32_t)output.n);
	memcpy(output.rows + output.n, compiler->rules,
	       compiler->n_rules * sizeof(*compiler->rules));
	fitted = reallocarray(words, n_words, sizeof(*words));
	*out = (struct unwind_rows){
		.words = fitted ? fitted : words,
		.n_words = n_words,
		.n_pages = n_pages,
		.n_rows = (uint32_t)output.n,
		.n_rules = (uint32_t)compiler->n_rules,
	};
	return 0;
}

void unwind_rows_fini(struct unwind_rows *rows)
{
	free(rows->words);
	*rows = (struct unwind_rows){ 0 };
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/parse/answers.h"
#include "daemon/symbol/symtab_builder.h"

/* The arrays of an encoded symbol table. */
struct arrays {
	uint32_t *starts, *sizes, *names;
	char *text;
};

static struct arrays arrays_of(void *data, size_t n)
{
	uint32_t *starts = (uint32_t *)((char *)data + sizeof(struct answer_symbols));

	return (struct arrays){ starts, starts + n, starts + 2 * n, (char *)(starts + 3 * n) };
}

int answer_symbols_encode(const struct symtab_builder *builder, const struct symtab_arrays *arrays,
			  uint64_t max_bytes, void **out, size_t *size_out)
{
	const struct symtab_candidate *items = builder->items;
	struct answer_symbols *head;
	struct arrays a;
	size_t text_size = 0, at = 0, size;

	for (size_t i = 0; i < builder->n; i++)
		text_size += items[i].name ? items[i].name_size + UINT64_C(1) : 0;
	size = sizeof(*head) + 3 * builder->n * sizeof(uint32_t) + text_size;
	if (size > max_bytes)
		return -E2BIG;
	head = malloc(size);
	if (!head)
		return -ENOMEM;
	*head = (struct answer_symbols){ .n = builder->n,
					 .base = builder->n ? items[0].start : 0,
					 .text_size = text_size,
					 .n_signals = arrays->n_signals };
	memcpy(head->signals, arrays->signals, sizeof(head->signals));
	a = arrays_of(head, builder->n);
	for (size_t i = 0; i < builder->n; i++) {
		uint64_t bytes = items[i].end - items[i].start;

		a.starts[i] = (uint32_t)(items[i].start - head->base);
		a.sizes[i] = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
		a.names[i] = items[i].name ? (uint32_t)at : ANSWER_NAMELESS;
		if (!items[i].name)
			continue;
		memcpy(a.text + at, items[i].name, items[i].name_size);
		at += items[i].name_size;
		a.text[at++] = '\0';
	}
	*out = head;
	*size_out = size;
	return 0;
}

/*
 * Copies function i to *out. Returns false if it is not sorted as lookups need it, or if its name
 * is not at *at in the text. Adds the size of the name to *at. Names may not share bytes: many long
 * ones would be few bytes of an answer, and take much memory here. Functions are sorted by their
 * start; of several with the same start, the longest comes first.
 */
static bool function_copy(const struct answer_symbols *head, const struct arrays *a, size_t i,
			  size_t *at, struct symtab_candidate *out)
{
	uint32_t start = a->starts[i], name = a->names[i];
	size_t left, n;

	if (!a->sizes[i] || (!i && start) ||
	    (i && (start < a->starts[i - 1] ||
		   (start == a->starts[i - 1] && a->sizes[i] >= a->sizes[i - 1]))))
		return false;
	*out = (struct symtab_candidate){ .start = head->base + start,
					  .end = head->base + start + a->sizes[i] };
	if (out->start < head->base || out->end < out->start)
		return false;
	if (name == ANSWER_NAMELESS)
		return true;
	if (name != *at || name >= head->text_size)
		return false;
	left = head->text_size - name;
	n = strnlen(a->text + name, left < ELF_NAME_BYTES_MAX ? left : ELF_NAME_BYTES_MAX);
	if (n == left || n == ELF_NAME_BYTES_MAX)
		return false;
	out->name = a->text + name;
	out->name_size = (uint16_t)n;
	*at += n + 1;
	return true;
}

int answer_symbols_decode(const void *data, size_t size, struct symtab_arrays *out)
{
	const struct answer_symbols *head = data;
	_cleanup_(freep) struct symtab_candidate *items = NULL;
	struct arrays a;
	size_t at = 0;

	if (size < sizeof(*head) || head->n >= UINT32_MAX || head->text_size > UINT32_MAX ||
	    head->n_signals > ARRAY_SIZE(out->signals) ||
	    size - sizeof(*head) != head->n * 3 * sizeof(uint32_t) + head->text_size)
		return -EPROTO;
	a = arrays_of((void *)(uintptr_t)data, head->n);
	items = reallocarray(NULL, head->n + 1, sizeof(*items));
	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < head->n; i++)
		if (!function_copy(head, &a, i, &at, &items[i]))
			return -EPROTO;
	if (at != head->text_size)
		return -EPROTO;
	out->n_signals = head->n_signals;
	memcpy(out->signals, head->signals, sizeof(out->signals));
	return symtab_arrays_fill(items, head->n, out);
}

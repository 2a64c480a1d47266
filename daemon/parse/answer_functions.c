/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/base.h"
#include "daemon/elf/functions.h"
#include "daemon/parse/answers.h"

/* The beginning of an encoded list. `n` places follow, then the names, each with a NUL. */
struct head {
	uint64_t n, text_size;
};

struct place {
	uint64_t offset;
	uint32_t counter, pad;
};

/* Returns the size of the encoded list. */
static uint64_t encoded_size(const struct answer_functions *list)
{
	return sizeof(struct head) + list->n * sizeof(struct place) + list->text_size;
}

int answer_functions_add(struct answer_functions *list, const char *name, uint64_t offset,
			 uint32_t counter)
{
	size_t size = strlen(name) + 1;

	if (encoded_size(list) + sizeof(struct place) + size > list->max_bytes)
		return -E2BIG;
	if (array_reserve(list->places, list->places_capacity, list->n + 1) ||
	    array_reserve(list->text, list->text_capacity, list->text_size + size))
		return -ENOMEM;
	list->places[list->n++] = (struct place){ .offset = offset, .counter = counter };
	memcpy(list->text + list->text_size, name, size);
	list->text_size += size;
	return 0;
}

int answer_functions_encode(const struct answer_functions *list, void **out, size_t *size_out)
{
	const size_t places = list->n * sizeof(struct place);
	struct head *head;

	*size_out = encoded_size(list);
	head = malloc(*size_out);
	if (!head)
		return -ENOMEM;
	*head = (struct head){ list->n, list->text_size };
	if (list->n) {
		memcpy(head + 1, list->places, places);
		memcpy((char *)(head + 1) + places, list->text, list->text_size);
	}
	*out = head;
	return 0;
}

void answer_functions_fini(struct answer_functions *list)
{
	free(list->places);
	free(list->text);
	*list = (struct answer_functions){ 0 };
}

/*
 * True if the text has n names, one after the other, none empty. If has_provider, each is
 * "provider:name".
 */
static bool text_is_good(const char *text, size_t size, uint64_t n, bool has_provider)
{
	size_t at = 0, len;

	for (; n && at < size; n--, at += len + 1) {
		len = strnlen(text + at, size - at);
		if (!len || len == size - at)
			return false;
		if (has_provider && !memchr(text + at, ':', len))
			return false;
	}
	return !n && at == size;
}

int answer_functions_check(const void *data, size_t size, bool has_provider)
{
	const struct head *head = data;
	const struct place *places;
	size_t rest;

	if (size < sizeof(*head))
		return -EPROTO;
	rest = size - sizeof(*head);
	if (head->n > rest / sizeof(*places) || head->text_size != rest - head->n * sizeof(*places))
		return -EPROTO;
	places = (const struct place *)(head + 1);
	for (uint64_t i = 0; i < head->n; i++)
		if (places[i].offset > INT64_MAX ||
		    (places[i].counter >= ELF_FUNCTION_SORTS && !has_provider))
			return -EPROTO;
	return text_is_good((const char *)(places + head->n), head->text_size, head->n,
			    has_provider)
		       ? 0
		       : -EPROTO;
}

int answer_functions_visit(const void *data, answer_function_fn visit, void *context)
{
	const struct head *head = data;
	const struct place *places = (const struct place *)(head + 1);
	const char *name = (const char *)(places + head->n);
	int r = 0;

	for (uint64_t i = 0; i < head->n && !r; i++) {
		r = visit(context, name, places[i].offset, places[i].counter);
		name += strlen(name) + 1;
	}
	return r;
}

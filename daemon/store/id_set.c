/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/id_set.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/hash_table.h"

enum { PAGE_BITS = 4096, WORD_BITS = 64 };

struct id_page {
	int64_t number; /* bit i of the page stands for the row number `number` * PAGE_BITS + i */
	uint64_t bits[PAGE_BITS / WORD_BITS];
	UT_hash_handle hh;
};

static struct id_page *page_find(const struct id_set *set, int64_t id)
{
	int64_t number = id / PAGE_BITS;
	struct id_page *page;

	HASH_FIND(hh, set->pages, &number, sizeof(number), page);
	return page;
}

static size_t bit_of(int64_t id)
{
	return (size_t)((uint64_t)id % PAGE_BITS);
}

int id_set_add(struct id_set *set, int64_t id)
{
	struct id_page *page = page_find(set, id);
	size_t bit = bit_of(id);

	if (!page) {
		page = calloc(1, sizeof(*page));
		if (!page)
			return -ENOMEM;
		page->number = id / PAGE_BITS;
		HASH_ADD(hh, set->pages, number, sizeof(page->number), page);
		if (!HASH_HAS(page)) {
			free(page);
			return -ENOMEM;
		}
	}
	page->bits[bit / WORD_BITS] |= UINT64_C(1) << bit % WORD_BITS;
	return 0;
}

bool id_set_has(const struct id_set *set, int64_t id)
{
	const struct id_page *page = page_find(set, id);
	size_t bit = bit_of(id);

	return page && page->bits[bit / WORD_BITS] >> bit % WORD_BITS & 1;
}

void id_set_clear(struct id_set *set)
{
	struct id_page *page, *next;

	HASH_ITER (hh, set->pages, page, next) {
		HASH_DEL(set->pages, page);
		free(page);
	}
}

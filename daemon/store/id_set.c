/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/id_set.h"

#include <errno.h>
#include <stdlib.h>

#include "common/hash_table.h"

/* PAGE_IDS: the numbers of a page. A byte has the tiers of two numbers. */
enum { PAGE_IDS = 4096, IDS_A_BYTE = 2 };

_Static_assert(ID_SET_TIERS *IDS_A_BYTE == 8, "a byte has the tiers of IDS_A_BYTE numbers");

struct id_page {
	int64_t number; /* the page is for the row numbers from `number` * PAGE_IDS on */
	uint8_t tiers[PAGE_IDS / IDS_A_BYTE];
	UT_hash_handle hh;
};

static struct id_page *page_find(const struct id_set *set, int64_t id)
{
	int64_t number = id / PAGE_IDS;
	struct id_page *page;

	HASH_FIND(hh, set->pages, &number, sizeof(number), page);
	return page;
}

/* Returns the index in page->tiers of a number, and sets *shift_out to its first bit there. */
static size_t place_of(int64_t id, unsigned int *shift_out)
{
	size_t place = (size_t)((uint64_t)id % PAGE_IDS);

	*shift_out = place % IDS_A_BYTE * ID_SET_TIERS;
	return place / IDS_A_BYTE;
}

int id_set_add(struct id_set *set, int64_t id, unsigned int tiers)
{
	struct id_page *page = page_find(set, id);
	unsigned int shift;
	size_t place = place_of(id, &shift);

	if (!page) {
		page = calloc(1, sizeof(*page));
		if (!page)
			return -ENOMEM;
		page->number = id / PAGE_IDS;
		HASH_ADD(hh, set->pages, number, sizeof(page->number), page);
		if (!HASH_HAS(page)) {
			free(page);
			return -ENOMEM;
		}
	}
	page->tiers[place] |= (uint8_t)(tiers << shift);
	return 0;
}

unsigned int id_set_tiers(const struct id_set *set, int64_t id)
{
	const struct id_page *page = page_find(set, id);
	unsigned int shift;
	size_t place = place_of(id, &shift);

	return page ? page->tiers[place] >> shift & ((1U << ID_SET_TIERS) - 1) : 0;
}

bool id_set_has(const struct id_set *set, int64_t id)
{
	return id_set_tiers(set, id) != 0;
}

void id_set_clear(struct id_set *set)
{
	struct id_page *page, *next;

	HASH_ITER (hh, set->pages, page, next) {
		HASH_DEL(set->pages, page);
		free(page);
	}
}

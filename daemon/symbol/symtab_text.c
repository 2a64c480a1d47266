/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/symtab_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "common/array.h"
#include "common/base.h"
#include "daemon/symbol/symtab_builder.h"

/*
 * Maximum size in bytes of the names of all functions together. The names take more memory here
 * than in the file, where several names can share bytes.
 */
#define TEXT_BYTES_MAX (256 * 1024 * 1024)

/*
 * The level makes names of C++ 3.5 to 4 times as small, at 200 MB/s; higher ones gain 2 % and take
 * twice the time.
 */
enum { ZSTD_LEVEL = 1 };

/* The state of symtab_text_make(). */
struct packer {
	ZSTD_CCtx *zstd;
	char *raw; /* the names of the current block */
	size_t raw_capacity;
	struct symtab_text text;
	size_t packed_capacity;
	size_t total; /* size of all names before compression */
};

static void packer_fini(struct packer *packer)
{
	ZSTD_freeCCtx(packer->zstd);
	free(packer->raw);
	symtab_text_fini(&packer->text);
}

/* Appends the compressed names of a block, which are in packer->raw. */
static int raw_pack(struct packer *packer, const struct symtab_text_block *block)
{
	struct symtab_text *text = &packer->text;
	size_t bound = ZSTD_compressBound(block->size), n;

	if (array_reserve(text->packed, packer->packed_capacity, text->packed_size + bound))
		return -ENOMEM;
	n = ZSTD_compressCCtx(packer->zstd, text->packed + text->packed_size, bound, packer->raw,
			      block->size, ZSTD_LEVEL);
	if (ZSTD_isError(n))
		return -ENOMEM;
	text->packed_size += n;
	return 0;
}

/* Adds a block with the names of the n functions items[]. */
static int block_add(struct packer *packer, const struct symtab_candidate *items, size_t n)
{
	struct symtab_text_block *block = &packer->text.blocks[packer->text.n_blocks++];

	*block = (struct symtab_text_block){ .at = (uint32_t)packer->text.packed_size };
	for (size_t i = 0; i < n; i++) {
		size_t size = items[i].name_size;

		if (!items[i].name)
			continue;
		packer->total += size + 1;
		if (packer->total > TEXT_BYTES_MAX)
			return -E2BIG;
		if (array_reserve(packer->raw, packer->raw_capacity, block->size + size + 1))
			return -ENOMEM;
		memcpy(packer->raw + block->size, items[i].name, size);
		packer->raw[block->size + size] = '\0';
		block->size += (uint32_t)size + 1;
		block->named |= UINT64_C(1) << i;
	}
	return block->size ? raw_pack(packer, block) : 0;
}

int symtab_text_make(const struct symtab_candidate *items, size_t n, struct symtab_text *out)
{
	_cleanup_(packer_fini) struct packer packer = { .zstd = ZSTD_createCCtx() };
	size_t n_blocks = (n + SYMTAB_TEXT_BLOCK - 1) / SYMTAB_TEXT_BLOCK;
	uint8_t *packed;
	int r = 0;

	packer.text.blocks = reallocarray(NULL, n_blocks + 1, sizeof(*packer.text.blocks));
	if (!packer.zstd || !packer.text.blocks)
		return -ENOMEM;
	for (size_t i = 0; i < n && !r; i += SYMTAB_TEXT_BLOCK)
		r = block_add(&packer, items + i,
			      n - i < SYMTAB_TEXT_BLOCK ? n - i : SYMTAB_TEXT_BLOCK);
	if (r)
		return r;
	packed = realloc(packer.text.packed, packer.text.packed_size + 1);
	if (!packed)
		return -ENOMEM;
	packer.text.packed = packed;
	*out = packer.text;
	packer.text = (struct symtab_text){};
	return 0;
}

void symtab_text_fini(struct symtab_text *text)
{
	free(text->blocks);
	free(text->packed);
	*text = (struct symtab_text){};
}

bool symtab_text_has(const struct symtab_text *text, size_t i)
{
	return text->blocks[i / SYMTAB_TEXT_BLOCK].named >> i % SYMTAB_TEXT_BLOCK & 1;
}

/* Unpacks the names of block number b. Returns NULL when out of memory. */
static char *block_unpack(const struct symtab_text *text, size_t b)
{
	const struct symtab_text_block *block = &text->blocks[b];
	size_t end = b + 1 < text->n_blocks ? block[1].at : text->packed_size, n;
	char *raw = malloc(block->size);

	if (!raw)
		return NULL;
	n = ZSTD_decompress(raw, block->size, text->packed + block->at, end - block->at);
	if (n != block->size) {
		free(raw);
		return NULL;
	}
	return raw;
}

bool symtab_text_get(const struct symtab_text *text, size_t i, char *buffer)
{
	uint64_t below = (UINT64_C(1) << i % SYMTAB_TEXT_BLOCK) - 1;
	uint64_t named = text->blocks[i / SYMTAB_TEXT_BLOCK].named;
	_cleanup_(freep) char *raw = block_unpack(text, i / SYMTAB_TEXT_BLOCK);
	const char *name = raw;

	if (!raw)
		return false;
	for (int skip = __builtin_popcountll(named & below); skip; skip--)
		name += strlen(name) + 1;
	strcpy(buffer, name);
	return true;
}

bool symtab_text_equal(const struct symtab_text *a, const struct symtab_text *b)
{
	return a->n_blocks == b->n_blocks && a->packed_size == b->packed_size &&
	       !memcmp(a->blocks, b->blocks, a->n_blocks * sizeof(*a->blocks)) &&
	       !memcmp(a->packed, b->packed, a->packed_size);
}

size_t symtab_text_bytes(const struct symtab_text *text)
{
	return text->n_blocks * sizeof(*text->blocks) + text->packed_size;
}

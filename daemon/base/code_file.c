/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/base/code_file.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/hash.h"

#define PAGE_BYTES 4096

struct code_file *code_file_new(const uint8_t *build_id, size_t build_id_size,
				const struct code_segment *segments, size_t n_segments)
{
	struct code_file *file;

	if (!build_id_size || build_id_size > CODE_BUILD_ID_MAX || n_segments > CODE_SEGMENTS_MAX)
		return NULL;
	file = calloc(1, sizeof(*file) + n_segments * sizeof(*segments));
	if (!file)
		return NULL;
	file->refs = 1;
	memcpy(file->build_id, build_id, build_id_size);
	file->build_id_size = build_id_size;
	file->n_segments = n_segments;
	if (n_segments)
		memcpy(file->segments, segments, n_segments * sizeof(*segments));
	file->hash = hash64(hash64(HASH64_SEED, build_id, build_id_size), file->segments,
			    n_segments * sizeof(*segments));
	return file;
}

struct code_file *code_file_ref(struct code_file *file)
{
	if (file)
		file->refs++;
	return file;
}

struct code_file *code_file_unref(struct code_file *file)
{
	if (file && --file->refs == 0)
		free(file);
	return NULL;
}

bool code_file_offset(const struct code_file *file, uint64_t address, uint64_t *offset_out)
{
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct code_segment *segment = &file->segments[i];
		/* Memory is mapped in whole pages: the first page begins before the segment. */
		uint64_t slack = segment->offset % PAGE_BYTES;

		if (address + slack < segment->address ||
		    (address >= segment->address && address - segment->address >= segment->size))
			continue;
		*offset_out = address - segment->address + segment->offset;
		return true;
	}
	return false;
}

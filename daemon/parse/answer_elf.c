/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/parse/answers.h"

/* The encoded facts of an ELF file. The segments and the name of the debug file follow. */
struct head {
	uint8_t build_id[ELF_BUILD_ID_MAX];
	uint32_t build_id_size;
	uint32_t n_segments;
	uint32_t debug_crc;
	uint32_t name_size; /* length of the debug file's name; 0: not given */
	uint32_t has_symtab;
	uint32_t pad;
};

struct segment {
	uint64_t offset, size, address, is_exec;
};

int answer_elf_encode(const struct elf_file *file, void **out, size_t *size_out)
{
	struct head head = {
		.build_id_size = (uint32_t)file->build_id_size,
		.n_segments = (uint32_t)file->n_segments,
		.debug_crc = file->debug_crc,
		.name_size = file->debug_name ? (uint32_t)strlen(file->debug_name) : 0,
		.has_symtab = file->has_symtab,
	};
	size_t size = sizeof(head) + file->n_segments * sizeof(struct segment) + head.name_size;
	char *data = malloc(size);
	struct segment *segments = (struct segment *)(data + sizeof(head));

	if (!data)
		return -ENOMEM;
	memcpy(head.build_id, file->build_id, sizeof(head.build_id));
	memcpy(data, &head, sizeof(head));
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct elf_segment *s = &file->segments[i];

		segments[i] = (struct segment){ s->offset, s->size, s->address, s->is_exec };
	}
	if (head.name_size)
		memcpy(data + size - head.name_size, file->debug_name, head.name_size);
	*out = data;
	*size_out = size;
	return 0;
}

/* True if the name is one that a file in a directory can have, or empty. */
static bool is_name(const char *name, size_t size)
{
	return size <= NAME_MAX && !memchr(name, '/', size) && !memchr(name, '\0', size) &&
	       (!size || size > 2 || memcmp(name, "..", size) != 0);
}

static int segments_decode(const struct segment *from, struct elf_file *file)
{
	for (size_t i = 0; i < file->n_segments; i++) {
		if (!from[i].size || from[i].offset > UINT64_MAX - from[i].size ||
		    from[i].is_exec > 1)
			return -EPROTO;
		file->segments[i] = (struct elf_segment){
			.offset = from[i].offset,
			.size = from[i].size,
			.address = from[i].address,
			.is_exec = from[i].is_exec != 0,
		};
	}
	return 0;
}

int answer_elf_decode(const void *data, size_t size, struct elf_file *out)
{
	_cleanup_(elf_file_fini) struct elf_file file = { 0 };
	const struct head *head = data;
	const char *name;

	if (size < sizeof(*head) || head->build_id_size > ELF_BUILD_ID_MAX ||
	    head->n_segments > ELF_SEGMENTS_MAX || head->name_size > NAME_MAX ||
	    head->has_symtab > 1 ||
	    size != sizeof(*head) + head->n_segments * sizeof(struct segment) + head->name_size)
		return -EPROTO;
	name = (const char *)data + size - head->name_size;
	if (!is_name(name, head->name_size))
		return -EPROTO;
	file.build_id_size = head->build_id_size;
	memcpy(file.build_id, head->build_id, sizeof(file.build_id));
	file.n_segments = head->n_segments;
	file.has_symtab = head->has_symtab != 0;
	file.debug_crc = head->debug_crc;
	file.segments = calloc(file.n_segments + 1, sizeof(*file.segments));
	if (head->name_size)
		file.debug_name = strndup(name, head->name_size);
	if (!file.segments || (head->name_size && !file.debug_name))
		return -ENOMEM;
	if (segments_decode((const struct segment *)(head + 1), &file) < 0)
		return -EPROTO;
	*out = file;
	file = (struct elf_file){ 0 };
	return 0;
}

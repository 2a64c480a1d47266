/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <gelf.h>
#include <libelf.h>
#include <lzma.h>

#include "common/base.h"
#include "daemon/elf/debug_file.h"
#include "daemon/elf/handle.h"

#define PACKED_BYTES_MAX   (16 * 1024 * 1024)
#define UNPACKED_BYTES_MAX (32 * 1024 * 1024) /* limit: a few bytes can expand to gigabytes */
#define UNPACKED_BYTES_MIN (256 * 1024)
#define DECODER_BYTES_MAX \
	(72 * 1024 * 1024) /* memory limit; unpacking takes 65 MiB after xz -9, usually 9 MiB */

static Elf_Data *packed_find(Elf *elf)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header))
			return NULL;
		if (header.sh_type != SHT_PROGBITS)
			continue;
		name = elf_handle_string(elf, names, header.sh_name);
		if (name && !strcmp(name, ".gnu_debugdata"))
			return elf_handle_bytes(section, PACKED_BYTES_MAX);
	}
	return NULL;
}

static int unpack(lzma_stream *stream, uint8_t **image, size_t *size)
{
	lzma_ret ret = LZMA_OK;

	while (ret == LZMA_OK) {
		if (!stream->avail_out) {
			size_t more = *size ? *size * 2 : UNPACKED_BYTES_MIN;
			uint8_t *bytes = more > UNPACKED_BYTES_MAX ? NULL : realloc(*image, more);

			if (!bytes)
				return more > UNPACKED_BYTES_MAX ? -E2BIG : -ENOMEM;
			stream->next_out = bytes + *size;
			stream->avail_out = more - *size;
			*image = bytes;
			*size = more;
		}
		ret = lzma_code(stream, LZMA_FINISH);
	}
	if (ret == LZMA_MEM_ERROR)
		return -ENOMEM;
	if (ret == LZMA_MEMLIMIT_ERROR)
		return -E2BIG;
	return ret == LZMA_STREAM_END ? 0 : -EBADMSG;
}

int debugdata_unpack(const struct elf_source *source, void **image_out, size_t *size_out)
{
	_cleanup_(elf_handle_endp) Elf *elf = elf_handle_open(source);
	Elf_Data *packed = elf ? packed_find(elf) : NULL;
	lzma_stream stream = LZMA_STREAM_INIT;
	uint8_t *image = NULL;
	size_t size = 0;
	int r = -ENOMEM;

	if (!packed || !packed->d_buf || !packed->d_size)
		return -ENODATA;
	if (lzma_stream_decoder(&stream, DECODER_BYTES_MAX, 0) == LZMA_OK) {
		stream.next_in = packed->d_buf;
		stream.avail_in = packed->d_size;
		r = unpack(&stream, &image, &size);
		size = (size_t)stream.total_out;
	}
	lzma_end(&stream);
	if (r < 0) {
		free(image);
		return r;
	}
	*image_out = image;
	*size_out = size;
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_CODE_FILE_H
#define STACKD_DAEMON_BASE_CODE_FILE_H

/*
 * Identifies an ELF file, and its code in it, for other tools: by the file's build-id, and by where
 * in the file its code is. Shared by the module of the file and by the frames in it, which outlive
 * the module. Immutable and refcounted; any thread.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CODE_BUILD_ID_MAX = 64, /* maximum size of a build-id in bytes */
	CODE_SEGMENTS_MAX = 8,	/* maximum number of segments with code; usual: one */
};

/* A part of the file that is mapped as code. */
struct code_segment {
	uint64_t address; /* ELF virtual address of the byte at `offset` */
	uint64_t offset;  /* position in the file */
	uint64_t size;
};

struct code_file {
	_Atomic unsigned int refs;
	uint64_t hash; /* of all members below */
	uint8_t build_id[CODE_BUILD_ID_MAX];
	size_t build_id_size;
	size_t n_segments;
	struct code_segment segments[];
};

/*
 * Makes a file with one reference, which the caller owns. Copies the build-id of 1 to
 * CODE_BUILD_ID_MAX bytes and at most CODE_SEGMENTS_MAX segments. NULL when out of memory or if
 * there are more.
 */
struct code_file *code_file_new(const uint8_t *build_id, size_t build_id_size,
				const struct code_segment *segments, size_t n_segments);

/* NULL is allowed. */
struct code_file *code_file_ref(struct code_file *file);
struct code_file *code_file_unref(struct code_file *file);

/*
 * Finds the offset in the file of the code with this ELF virtual address. Returns false if no
 * segment has it.
 */
bool code_file_offset(const struct code_file *file, uint64_t address, uint64_t *offset_out);

#endif

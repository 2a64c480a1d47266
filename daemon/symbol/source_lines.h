/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SOURCE_LINES_H
#define STACKD_DAEMON_SYMBOL_SOURCE_LINES_H

/*
 * Source lines and inlined functions of addresses, for one answer: in go files by identity and
 * addresses in them, out come frames. Debug information is read by a process of its own, see
 * symbol_lines.h, one at a time. Any thread that may wait for some seconds.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"

struct source_lines;
struct source_lines_helper;

struct source_lines_stats {
	uint64_t runs;
	uint64_t failed; /* killed for time or memory, or turned away as another took too long */
};

struct source_frame {
	const char *name; /* NULL for the last: it is that of the symbol; else may be unknown */
	const char *file; /* NULL: not known */
	uint32_t line;	  /* 0: not known */
};

/* What runs the process; max_memory is of its address space, bytes. Owned by the recorder. */
int source_lines_helper_new(uint64_t max_memory, struct source_lines_helper **out);
struct source_lines_helper *source_lines_helper_free(struct source_lines_helper *helper);
void source_lines_helper_stats(struct source_lines_helper *helper, struct source_lines_stats *out);

/* Another program, and how long it may run: for tests. */
void source_lines_helper_set_program(struct source_lines_helper *helper, const char *path,
				     int64_t run_ns);

/*
 * Opens a file by its identity, and its separate debug file where it has one (else -1), both at
 * fd_min or above. Returns 0 or a negative errno.
 */
struct source_lines_opener {
	int (*open_file)(void *userdata, uint64_t file_id, const char *path, int fd_min,
			 int *fd_out, int *debug_fd_out);
	void *userdata;
};

/* All that is made is the arena's. */
int source_lines_new(struct arena *arena, const struct source_lines_opener *opener,
		     struct source_lines **out);
struct source_lines *source_lines_free(struct source_lines *lines);

/* Asks for the address (an ELF virtual one, in an instruction) in a file. 0 or -ENOMEM. */
int source_lines_add(struct source_lines *lines, uint64_t file_id, const char *path,
		     uint64_t address);

/* Reads them. 0, also where there is nothing to be had, or -ENOMEM. */
int source_lines_run(struct source_lines *lines, struct source_lines_helper *helper);

/* Leaf first, the last one is the function of the symbol. NULL where there is nothing. */
const struct source_frame *source_lines_find(const struct source_lines *lines, uint64_t file_id,
					     uint64_t address, size_t *n_out);

/* What is not there and why, as sentences; NULL at the end. Up to SOURCE_LINES_NOTES_MAX. -ENOMEM.
 */
enum { SOURCE_LINES_NOTES_MAX = 3 };
int source_lines_notes(const struct source_lines *lines, const char **notes, size_t *n_out);

#endif

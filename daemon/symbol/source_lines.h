/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SOURCE_LINES_H
#define STACKD_DAEMON_SYMBOL_SOURCE_LINES_H

/*
 * Finds source lines and inlined functions of addresses, for one answer to a client. Debug
 * information is read by a child process, one at a time, see source_lines_child.h. Any thread that
 * may wait for some seconds.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"

struct source_lines;
struct source_lines_helper;

struct source_lines_stats {
	uint64_t runs;
	uint64_t failed; /* the child was killed for its time or memory, or another one was in the
			    way for too long */
};

struct source_frame {
	const char
		*name; /* NULL if unknown, and in the last frame, whose function the symbol names */
	const char *file; /* NULL: not known */
	uint32_t line;	  /* 0: not known */
};

/*
 * The helper starts the child processes; max_memory is the limit of their address space, in bytes.
 * Owned by the recorder.
 */
int source_lines_helper_new(uint64_t max_memory, struct source_lines_helper **out);
struct source_lines_helper *source_lines_helper_free(struct source_lines_helper *helper);
void source_lines_helper_stats(struct source_lines_helper *helper, struct source_lines_stats *out);

/* For tests: runs another program, with another limit of time. */
void source_lines_helper_set_program(struct source_lines_helper *helper, const char *path,
				     int64_t run_ns);

/*
 * Opens a file by its identity, and its separate debug file if it has one (else -1), both as
 * descriptors of fd_min or above. Returns 0 or a negative errno.
 */
struct source_lines_opener {
	int (*open_file)(void *userdata, uint64_t file_id, const char *path, int fd_min,
			 int *fd_out, int *debug_fd_out);
	void *userdata;
};

/* Makes an empty set of addresses. Results are allocated in the arena. -ENOMEM. */
int source_lines_new(struct arena *arena, const struct source_lines_opener *opener,
		     struct source_lines **out);
struct source_lines *source_lines_free(struct source_lines *lines);

/*
 * Adds an address to look up in a file: an ELF virtual address within an instruction. path is
 * borrowed until the notes are made. 0 or -ENOMEM.
 */
int source_lines_add(struct source_lines *lines, uint64_t file_id, const char *path,
		     uint64_t address);

/* Looks all addresses up. Returns 0, also if nothing was found, or -ENOMEM. */
int source_lines_run(struct source_lines *lines, struct source_lines_helper *helper);

/*
 * Returns the frames of an address, innermost first; the last one is the function that the symbol
 * names. NULL where nothing is known.
 */
const struct source_frame *source_lines_find(const struct source_lines *lines, uint64_t file_id,
					     uint64_t address, size_t *n_out);

/*
 * Makes sentences that say which lines are missing and why, SOURCE_LINES_NOTES_MAX at most.
 * -ENOMEM.
 */
enum { SOURCE_LINES_NOTES_MAX = 3 };
int source_lines_notes(const struct source_lines *lines, const char **notes, size_t *n_out);

#endif

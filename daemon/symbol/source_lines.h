/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SOURCE_LINES_H
#define STACKD_DAEMON_SYMBOL_SOURCE_LINES_H

/*
 * Finds the source lines and inlined functions of addresses, for one answer to a client. A child
 * process reads the debug information (source_lines_child.h); only one such child runs at a time.
 * May be called on any thread that can wait for some seconds.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/arena.h"

struct source_lines;
struct source_lines_helper;

struct source_lines_stats {
	uint64_t runs;	 /* number of tries to run a child process, failed ones included */
	uint64_t failed; /* number of failed tries: the child exceeded a limit of
			    time or memory, the child could not be started, or another child ran
			    for too long */
};

struct source_frame {
	const char *name; /* name of an inlined function, NULL if unknown. Always NULL in the last
			     frame of an address: that function's name is in the symbol table */
	const char *file; /* path of the source file; NULL if unknown */
	uint32_t line;	  /* number of the line in the file; 0 if unknown */
};

/*
 * Makes the helper, which starts the child processes. max_memory: limit of the address space of a
 * child, in bytes. The recorder owns the helper.
 */
int source_lines_helper_new(uint64_t max_memory, struct source_lines_helper **out);
struct source_lines_helper *source_lines_helper_free(struct source_lines_helper *helper);
void source_lines_helper_stats(struct source_lines_helper *helper, struct source_lines_stats *out);

/* For tests: makes the helper run another program as the child, with run_ns as its time limit. */
void source_lines_helper_set_program(struct source_lines_helper *helper, const char *path,
				     int64_t run_ns);

/*
 * How source_lines_run() opens files. open_file() opens a file by its identity and path. It stores
 * a descriptor of the file and one of its separate debug file (-1 if it has none); none may be
 * below fd_min. Returns 0 or a negative errno.
 */
struct source_lines_opener {
	int (*open_file)(void *userdata, uint64_t file_id, const char *path, int fd_min,
			 int *fd_out, int *debug_fd_out);
	void *userdata;
};

/* Makes an empty set of addresses. Results are allocated in the arena. Returns 0 or -ENOMEM. */
int source_lines_new(struct arena *arena, const struct source_lines_opener *opener,
		     struct source_lines **out);
struct source_lines *source_lines_free(struct source_lines *lines);

/*
 * Adds an ELF virtual address of a file to the set. The address may be anywhere in an instruction.
 * The string `path` must live until source_lines_notes() has returned. Returns 0 or -ENOMEM.
 */
int source_lines_add(struct source_lines *lines, uint64_t file_id, const char *path,
		     uint64_t address);

/*
 * Looks up all addresses of the set in the debug information. Returns 0, even if nothing was found;
 * or -ENOMEM.
 */
int source_lines_run(struct source_lines *lines, struct source_lines_helper *helper);

/*
 * Returns the frames of an address: the functions that are inlined there, innermost first, and
 * after them the function that contains them all. NULL if nothing is known about the address.
 */
const struct source_frame *source_lines_find(const struct source_lines *lines, uint64_t file_id,
					     const char *path, uint64_t address, size_t *n_out);

/*
 * Makes sentences, at most SOURCE_LINES_NOTES_MAX, that tell the client for which files source
 * lines are missing, and why. Returns 0 or -ENOMEM.
 */
enum { SOURCE_LINES_NOTES_MAX = 3 };
int source_lines_notes(const struct source_lines *lines, const char **notes, size_t *n_out);

#endif

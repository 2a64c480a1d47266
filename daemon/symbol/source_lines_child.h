/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SOURCE_LINES_CHILD_H
#define STACKD_DAEMON_SYMBOL_SOURCE_LINES_CHILD_H

/*
 * Source lines of addresses, from debug information: a process of its own, for that information may
 * be large, broken or hostile. In goes a file with the request, other files by descriptor, out
 * comes a file with the answer. It has no privileges, and limits on time, memory and output.
 */

#include <stdint.h>

/* argv[0] of the daemon's own program when it is to be this process. */
#define SYMBOL_LINES_NAME "stackd-lines"

enum {
	SYMBOL_LINES_REQUEST_FD = 3,
	SYMBOL_LINES_REPLY_FD = 4,
	SYMBOL_LINES_FIRST_FD = 5, /* of the files */
	SYMBOL_LINES_FILES_MAX = 128,
	SYMBOL_LINES_PLACES_MAX = 65536,
	SYMBOL_LINES_DEPTH_MAX = 32, /* functions inlined into each other */
	SYMBOL_LINES_TEXT_MAX = 4096,
};

/* A request: the head, for each file its part of the addresses, then the addresses of all. */
struct symbol_lines_head {
	uint64_t memory_bytes;
	uint64_t reply_bytes;
	uint32_t cpu_seconds;
	uint32_t n_files;
};

/* The descriptors of a file are SYMBOL_LINES_FIRST_FD + 2 * its number, and the one after it. */
struct symbol_lines_file {
	uint32_t n;
	uint8_t has_file;
	uint8_t has_debug; /* its separate debug file */
	uint8_t pad[2];
};

/*
 * The answer, in the order of the request: for each file whether it has lines, then for each of its
 * addresses (also where it has none) how many frames, and these, leaf first, with their texts
 * behind. All but the last are inlined; the last has no name.
 */
struct symbol_lines_place {
	uint32_t frames;
};

struct symbol_lines_frame {
	uint32_t line;		       /* 0: not known */
	uint16_t name_size, file_size; /* 0: not known */
};

/* What the process does; its exit code. */
int symbol_lines_main(void);

#endif

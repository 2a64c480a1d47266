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
#define LINES_CHILD_NAME "stackd-lines"

enum {
	LINES_CHILD_REQUEST_FD = 3,
	LINES_CHILD_REPLY_FD = 4,
	LINES_CHILD_FIRST_FD = 5, /* of the files */
	LINES_CHILD_FILES_MAX = 128,
	LINES_CHILD_PLACES_MAX = 65536,
	LINES_CHILD_DEPTH_MAX = 32, /* functions inlined into each other */
	LINES_CHILD_TEXT_MAX = 4096,
};

/* A request: the head, for each file its part of the addresses, then the addresses of all. */
struct lines_child_head {
	uint64_t memory_bytes;
	uint64_t reply_bytes;
	uint32_t cpu_seconds;
	uint32_t n_files;
};

/* The descriptors of a file are LINES_CHILD_FIRST_FD + 2 * its number, and the one after it. */
struct lines_child_file {
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
struct lines_child_place {
	uint32_t frames;
};

struct lines_child_frame {
	uint32_t line;		       /* 0: not known */
	uint16_t name_size, file_size; /* 0: not known */
};

/* What the process does; its exit code. */
int lines_child_main(void);

#endif

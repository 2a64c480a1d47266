/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SOURCE_LINES_CHILD_H
#define STACKD_DAEMON_SYMBOL_SOURCE_LINES_CHILD_H

/*
 * Reads source lines from debug information, in a process of its own, because that information may
 * be large, broken or hostile. It gets a file with the request and the files to read as
 * descriptors, and writes a file with the reply. It has no privileges, and limits on time, memory
 * and output.
 */

#include <stdint.h>

/* argv[0] by which the daemon's program knows that it is to be this process. */
#define LINES_CHILD_NAME "stackd-lines"

enum {
	LINES_CHILD_REQUEST_FD = 3,
	LINES_CHILD_REPLY_FD = 4,
	LINES_CHILD_FIRST_FD = 5, /* the first descriptor of the files */
	LINES_CHILD_FILES_MAX = 128,
	LINES_CHILD_ADDRESSES_MAX = 65536,
	LINES_CHILD_DEPTH_MAX = 32, /* frames of one address: functions inlined into each other */
	LINES_CHILD_TEXT_MAX = 4096,
};

/*
 * A request: the head, then a lines_child_file for each file, then the addresses of all files in
 * that order.
 */
struct lines_child_head {
	uint64_t memory_bytes;
	uint64_t reply_bytes;
	uint32_t cpu_seconds;
	uint32_t n_files;
};

/* A file to read. Its descriptors are LINES_CHILD_FIRST_FD + 2 * its number and the next one. */
struct lines_child_file {
	uint32_t n; /* addresses */
	uint8_t has_file;
	uint8_t has_debug; /* the second descriptor is its separate debug file */
	uint8_t pad[2];
};

/*
 * The reply, in the order of the request: for each file a uint32_t that says whether it has lines,
 * then for each of its addresses a lines_child_address with the number of frames and the frames,
 * innermost first, each followed by its texts. All frames but the last are inlined functions; the
 * last has no name.
 */
struct lines_child_address {
	uint32_t frames;
};

struct lines_child_frame {
	uint32_t line;		       /* 0: not known */
	uint16_t name_size, file_size; /* 0: not known */
};

/* Runs the child process. Returns its exit code. */
int lines_child_main(void);

#endif

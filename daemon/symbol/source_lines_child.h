/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SOURCE_LINES_CHILD_H
#define STACKD_DAEMON_SYMBOL_SOURCE_LINES_CHILD_H

/*
 * Reads source lines from debug information in a child process, because the information may be
 * large, broken or hostile. The child gets open descriptors of the request, of the files to read
 * and of a file for its reply. It has no privileges, and its time, memory and output are limited.
 */

#include <stdint.h>

/* The argv[0] by which the daemon's program knows that it was started as this child process. */
#define LINES_CHILD_NAME "stackd-lines"

enum {
	LINES_CHILD_REQUEST_FD = 3,
	LINES_CHILD_REPLY_FD = 4,
	LINES_CHILD_FIRST_FD = 5, /* number that the first file's descriptor has in the child */
	LINES_CHILD_FILES_MAX = 128,
	LINES_CHILD_ADDRESSES_MAX = 65536,
	LINES_CHILD_DEPTH_MAX = 32, /* maximum number of frames of one address: functions that are
				       inlined into each other */
	LINES_CHILD_TEXT_MAX = 4096,
};

/*
 * The beginning of a request. It is followed by a struct lines_child_file for each file, and then
 * by the addresses (uint64_t): first all addresses of the first file, then those of the second
 * file, and so on.
 */
struct lines_child_head {
	uint64_t memory_bytes;
	uint64_t reply_bytes;
	uint32_t cpu_seconds;
	uint32_t n_files;
};

/*
 * A file to read. File number i has two descriptors, LINES_CHILD_FIRST_FD + 2 * i and the one after
 * it.
 */
struct lines_child_file {
	uint32_t n;	   /* number of addresses of this file in the request */
	uint8_t has_file;  /* the file itself is open, at the first of its two descriptors */
	uint8_t has_debug; /* the separate debug file of this file is open, at the second of the two
			      descriptors */
	uint8_t pad[2];
};

/*
 * The reply has the same order as the request. For each file it has a uint32_t, which is not 0 if
 * the file has source lines. For each address of the file, a struct lines_child_address follows,
 * and after it the frames of this address, innermost first. Each frame is a struct
 * lines_child_frame, the function's name and the file's path. All frames but the last are inlined
 * functions; the last frame has no name.
 */
struct lines_child_address {
	uint32_t frames; /* number of frames of the address; 0: nothing is known */
};

struct lines_child_frame {
	uint32_t line;		       /* number of the source line; 0 if unknown */
	uint16_t name_size, file_size; /* lengths of the function's name and of the file's path,
					  which follow this struct; 0 if unknown */
};

/* Runs the child process. Returns its exit code. */
int lines_child_main(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PARSE_MESSAGE_H
#define STACKD_DAEMON_PARSE_MESSAGE_H

/*
 * The messages between the daemon, the process that starts workers (zygote.c) and the workers
 * (worker.c). All are programs of the same build, so the structs are sent as they are. A worker may
 * have been taken over by a hostile file: the daemon checks every member of an answer.
 */

#include <stdint.h>

#include "daemon/symbol/perf_lines.h"

/* The argv[0] by which the daemon's program knows that it was started to start workers. */
#define PARSE_PROCESS_NAME "stackd-parse"

enum {
	PARSE_PROCESSES_MAX = 16, /* maximum number of workers, with those that cannot be killed */
};

enum parse_kind {
	PARSE_ELF = 1,	 /* build-id, segments and debug link of an ELF file */
	PARSE_DEBUG,	 /* whether the file is the debug file of another ELF file */
	PARSE_SYMBOLS,	 /* symbol table */
	PARSE_ROWS,	 /* unwind rows */
	PARSE_NAME,	 /* the readable form of a mangled name, which follows the request */
	PARSE_FUNCTIONS, /* all functions, with their offsets in the file */
	PARSE_USDT,	 /* all static probes (USDT) */
	PARSE_PERF,	 /* functions of a perf map */
	PARSE_KINDS,
};

/*
 * A request to a worker. `size` bytes follow it. The message carries up to two descriptors: of the
 * file and, if n_fds is 2, of its separate debug file.
 */
struct parse_request {
	uint32_t kind;
	uint32_t n_fds;	    /* number of descriptors; 0: parse the vdso */
	uint64_t serial;    /* number of the request, which the answer repeats */
	uint64_t size;	    /* number of bytes that follow */
	uint64_t vdso_size; /* size of the vdso in bytes, if n_fds is 0 */
	uint64_t max_bytes; /* maximum size of the answer */
	uint64_t cpu_ms;    /* CPU time that the worker may use for this request */
	uint64_t max_words; /* PARSE_ROWS: maximum number of words of the table */
	uint64_t elf_size;  /* PARSE_ROWS, PARSE_DEBUG: bytes of the encoded struct elf_file */
	/* PARSE_ROWS: the members of struct unwind_wanted; n_parts is 0 if all are wanted */
	uint64_t hash;
	uint32_t n_parts, n_frames, n_rules, pad;
};

/* The bytes that follow a request of PARSE_PERF. */
struct parse_perf {
	struct perf_mark after; /* zeroed: the file was not read before */
	uint64_t max_bytes;	/* of memory, see perf_lines_read() */
};

/* The beginning of an answer. `size` bytes follow it. */
struct parse_answer {
	int32_t error; /* 0 or a negative errno */
	uint32_t kind; /* kind of the request that is answered */
	uint64_t serial;
	uint64_t size;
	uint64_t cpu_ns; /* CPU time that the worker has used since its last answer */
};

enum parse_order {
	PARSE_START, /* start a worker; the message carries the worker's end of a socket */
	PARSE_END,   /* kill a worker */
};

/* A message to the zygote. */
struct parse_control {
	uint32_t order;
	uint32_t is_urgent; /* PARSE_START: the worker runs at a higher priority */
	int64_t pid;	    /* PARSE_END: the worker's process id */
};

/* The answer of the zygote to PARSE_START; it does not answer PARSE_END. */
struct parse_started {
	int64_t pid;	   /* process id, or a negative errno */
	uint32_t n_killed; /* number of workers that were killed a second ago and have not ended */
	uint32_t pad;
};

#endif

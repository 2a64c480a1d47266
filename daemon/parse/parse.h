/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PARSE_PARSE_H
#define STACKD_DAEMON_PARSE_PARSE_H

/*
 * Reads files that strangers wrote, in a worker process. Each function also takes NULL for the
 * parser, and then reads the file in this process; only tests do this. May be called on any thread.
 * In addition to the errors that are given for each function, all return -EPROTO if the file makes
 * workers hang, die or answer nonsense, and -EAGAIN if no worker can be started at the moment.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/file_state.h"

struct elf_file;
struct parser;
struct perf_lines;
struct perf_mark;
struct symtab;
struct unwind_rows;
struct unwind_wanted;

/* A file to parse. The caller owns the descriptors and strings. */
struct parse_file {
	int fd;	      /* -1: the vdso, with vdso_size bytes */
	int debug_fd; /* descriptor of its separate debug file; -1: none */
	size_t vdso_size;
	const char *path;
	struct file_state state;
	uid_t owner;	/* user to whom the file belongs */
	uint64_t group; /* of a file of root, see parse_group() */
	bool is_urgent; /* the file is small, and the caller in a hurry */
	bool is_alone;	/* the worker must not have parsed any other file, see struct parser_call */
	char *why;	/* gets the reason of -EAGAIN and -EPROTO, see struct parser_call */
};

/*
 * Returns a number for the control group of the process whose directory in /proc is proc_fd; for
 * groups below depth 2, that of the group at depth 2. 0 if it is not known, or proc_fd is -1.
 */
uint64_t parse_group(int proc_fd);

/* Reads an ELF file, as elf_file_read() does. */
int parse_elf(struct parser *parser, const struct parse_file *file, struct elf_file *out);

/*
 * True if file->fd is the separate debug file of the ELF file `of`, as debug_file_is_of() says.
 */
bool parse_is_debug_of(struct parser *parser, const struct parse_file *file,
		       const struct elf_file *of);

/*
 * Reads a symbol table, as symtab_load() does. Its names are demangled by workers, too; the parser
 * must outlive it. Returns -E2BIG, too, if the table would take more
 * than max_bytes.
 */
int parse_symbols(struct parser *parser, const struct parse_file *file, uint64_t max_bytes,
		  struct symtab **out);

/*
 * Lists all functions of an ELF file, as elf_functions() does, or all its static probes, as
 * elf_usdt() does. Calls `visit` for each; any result but 0 ends the listing and is returned.
 * For functions, `counter` is the enum elf_function_sort. Returns -E2BIG, too, if the list is too
 * long.
 */
typedef int (*parse_function_fn)(void *context, const char *name, uint64_t offset,
				 uint32_t counter);
int parse_functions(struct parser *parser, const struct parse_file *file, parse_function_fn visit,
		    void *context);
int parse_usdt(struct parser *parser, const struct parse_file *file, parse_function_fn visit,
	       void *context);

/*
 * Compiles unwind rows, as compile_elf() does. Stores the CPU time that this took in *cpu_ns_out.
 */
int parse_rows(struct parser *parser, const struct parse_file *file, const struct elf_file *elf,
	       size_t max_words, const struct unwind_wanted *wanted, struct unwind_rows *out,
	       int64_t *cpu_ns_out);

/*
 * Reads lines of a perf map, as perf_lines_read() does. The caller calls perf_lines_fini().
 */
int parse_perf_lines(struct parser *parser, const struct parse_file *file,
		     const struct perf_mark *after, size_t max_bytes, struct perf_lines *out);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Measures what parsing files in a worker process costs, against parsing them in this process.
 * Usage: bench_parse PARSE_HONEST FILE... No root. Prints the CPU time of all files, least of RUNS.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/base.h"
#include "daemon/elf/file.h"
#include "daemon/parse/parse.h"
#include "daemon/parse/parser.h"
#include "daemon/symbol/symtab.h"
#include "daemon/unwind/rows.h"

enum { RUNS = 5, WORDS_MAX = 4 << 20, SYMBOLS_MAX = 256 << 20 };

/* Reads all of one file that stackd reads of it. Returns the number of requests that worked. */
static int file_parse(struct parser *parser, const char *path)
{
	_cleanup_(elf_file_fini) struct elf_file elf = { 0 };
	_cleanup_(unwind_rows_fini) struct unwind_rows rows = { 0 };
	_cleanup_(symtab_freep) struct symtab *symtab = NULL;
	struct parse_file file = { .debug_fd = -1, .path = path };
	struct stat st;
	int64_t cpu_ns;
	int n = 0;

	file.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (file.fd < 0 || fstat(file.fd, &st) < 0)
		return 0;
	file.state = file_state_of(&st);
	file.owner = st.st_uid;
	n += parse_elf(parser, &file, &elf) == 0;
	if (n) {
		n += parse_rows(parser, &file, &elf, WORDS_MAX, NULL, &rows, &cpu_ns) == 0;
		n += parse_symbols(parser, &file, SYMBOLS_MAX, &symtab) == 0;
	}
	close(file.fd);
	return n;
}

static int64_t cpu_now(struct parser *parser)
{
	int64_t ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	return parser ? ns + (int64_t)*parser_cpu_ns(parser) : ns;
}

/* Returns the CPU time in ns that parsing the files takes; *n_out is the number of requests. */
static int64_t files_measure(struct parser *parser, int argc, char *argv[], int *n_out)
{
	int64_t least = INT64_MAX, begun, took;

	for (int run = 0; run < RUNS; run++) {
		*n_out = 0;
		begun = cpu_now(parser);
		for (int i = 0; i < argc; i++)
			*n_out += file_parse(parser, argv[i]);
		took = cpu_now(parser) - begun;
		least = took < least ? took : least;
	}
	return least;
}

int main(int argc, char *argv[])
{
	struct parser *parser;
	int64_t here, there;
	int n, n_there;

	/* as the daemon does */
	mallopt(M_MMAP_THRESHOLD, 256 * 1024);
	mallopt(M_TRIM_THRESHOLD, 256 * 1024);
	if (argc < 3 || parser_new(argv[1], &parser))
		return EXIT_FAILURE;
	here = files_measure(NULL, argc - 2, argv + 2, &n);
	there = files_measure(parser, argc - 2, argv + 2, &n_there);
	printf("%d files, %d and %d requests: %" PRId64 " us here, %" PRId64
	       " us by workers: %+.1f %%\n",
	       argc - 2, n, n_there, here / 1000, there / 1000,
	       100.0 * (double)(there - here) / (double)here);
	parser_free(parser);
	return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests the worker processes that parse files: honest ones give the same as parsing in this
 * process, hostile ones harm nobody but their own file.
 * Arguments: programs that start honest and hostile workers; an ELF file with symbols.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "bpf/unwind_shared.h"
#include "common/base.h"
#include "daemon/elf/file.h"
#include "daemon/elf/functions.h"
#include "daemon/parse/answers.h"
#include "daemon/parse/parse.h"
#include "daemon/parse/parser.h"
#include "daemon/symbol/perf_lines.h"
#include "daemon/symbol/symtab.h"
#include "daemon/unwind/compile_elf.h"

enum { WORDS_MAX = 1 << 20, SYMBOLS_MAX = 64 << 20 };

static const char *honest, *hostile, *program, *framed;
static struct parser *thread_parser; /* of killed_zygote_blames_none() */

static struct parser *start_parser(const char *path)
{
	struct parser *parser = NULL;

	assert_int_equal(parser_new(path, &parser), 0);
	/* However busy the host is, a worker that gets no CPU counts as one that hangs. */
	parser_set_proc(parser, "/nowhere");
	return parser;
}

static struct parse_file file_open(const char *path)
{
	struct parse_file file = { .debug_fd = -1, .path = path };
	struct stat st;

	file.fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(file.fd >= 0);
	assert_int_equal(fstat(file.fd, &st), 0);
	file.state = file_state_of(&st);
	file.owner = st.st_uid;
	return file;
}

/* Makes a file whose content tells a hostile worker what to do. */
static struct parse_file file_word(const char *word)
{
	static uint64_t inode;
	struct parse_file file = { .debug_fd = -1, .path = word };

	file.fd = memfd_create("word", MFD_CLOEXEC);
	assert_true(file.fd >= 0);
	assert_int_equal(write(file.fd, word, strlen(word)), strlen(word));
	file.state.inode = ++inode;
	return file;
}

static void check_same_as_here(const char *path)
{
	struct parse_file file = file_open(path);
	struct elf_source source = { .fd = file.fd };
	struct symtab *here, *there = NULL, *none;
	struct unwind_rows rows, rows_there = { 0 };
	struct elf_file elf, elf_there = { 0 };
	struct parser *parser = start_parser(honest);
	struct parser_stats stats;
	int64_t cpu_ns = 0;

	assert_int_equal(elf_file_read(&source, &elf), 0);
	assert_int_equal(parse_elf(parser, &file, &elf_there), 0);
	assert_int_equal(elf.n_segments, elf_there.n_segments);
	for (size_t i = 0; i < elf.n_segments; i++) {
		assert_int_equal(elf.segments[i].offset, elf_there.segments[i].offset);
		assert_int_equal(elf.segments[i].size, elf_there.segments[i].size);
		assert_int_equal(elf.segments[i].address, elf_there.segments[i].address);
		assert_int_equal(elf.segments[i].is_exec, elf_there.segments[i].is_exec);
	}
	assert_int_equal(elf.has_symtab, elf_there.has_symtab);
	assert_int_equal(elf.build_id_size, elf_there.build_id_size);
	assert_memory_equal(elf.build_id, elf_there.build_id, elf.build_id_size);

	assert_int_equal(symtab_load(&source, NULL, &here), 0);
	assert_int_equal(parse_symbols(parser, &file, SYMBOLS_MAX, &there), 0);
	assert_true(symtab_equal(here, there));
	assert_int_equal(parse_symbols(parser, &file, 100, &none), -E2BIG);

	assert_int_equal(compile_elf(&source, &elf, -1, WORDS_MAX, NULL, &rows), 0);
	assert_int_equal(parse_rows(parser, &file, &elf, WORDS_MAX, NULL, &rows_there, &cpu_ns), 0);
	assert_true(cpu_ns > 0);
	assert_int_equal(rows.n_words, rows_there.n_words);
	assert_int_equal(rows.n_rows, rows_there.n_rows);
	assert_int_equal(rows.n_rules, rows_there.n_rules);
	assert_memory_equal(rows.words, rows_there.words, rows.n_words * sizeof(*rows.words));

	parser_stats(parser, &stats);
	assert_int_equal(stats.given_up, 0);
	assert_int_equal(stats.replaced, 0);
	unwind_rows_fini(&rows);
	unwind_rows_fini(&rows_there);
	symtab_free(here);
	symtab_free(there);
	elf_file_fini(&elf);
	elf_file_fini(&elf_there);
	parser_free(parser);
	close(file.fd);
}

/* Sums up the functions or probes of a file. */
struct listed {
	size_t n;
	uint64_t sum; /* of the offsets and counters, and of the bytes of the names */
};

static int listed_add(void *context, const char *name, uint64_t offset, uint32_t counter)
{
	struct listed *listed = context;

	listed->n++;
	listed->sum += offset + 3 * (uint64_t)counter;
	for (; *name; name++)
		listed->sum = listed->sum * 31 + (uint8_t)*name;
	return 0;
}

static int listing_end(void *context, const char *name, uint64_t offset, uint32_t counter)
{
	return ++*(int *)context == 3 ? -EXDEV : 0;
}

static void honest_lists(void **state)
{
	struct parse_file file = file_open(program), word = file_word("no ELF file");
	struct parser *parser = start_parser(honest);
	struct listed here = { 0 }, there = { 0 };
	int n = 0;

	assert_int_equal(parse_functions(NULL, &file, listed_add, &here), 0);
	assert_int_equal(parse_functions(parser, &file, listed_add, &there), 0);
	assert_true(here.n > 3);
	assert_int_equal(here.n, there.n);
	assert_int_equal(here.sum, there.sum);
	assert_int_equal(parse_functions(parser, &file, listing_end, &n), -EXDEV);
	assert_int_equal(n, 3);
	/* What is listed of the debug file comes in addition. */
	file.debug_fd = dup(file.fd);
	assert_int_equal(parse_functions(parser, &file, listed_add, &there), 0);
	assert_int_equal(there.n, 3 * here.n);
	close(file.debug_fd);
	assert_int_equal(parse_functions(parser, &word, listed_add, &there), -ENOEXEC);
	assert_int_equal(parse_usdt(parser, &word, listed_add, &there), -ENOEXEC);
	close(word.fd);
	close(file.fd);
	parser_free(parser);
}

/* Static probes have names with a provider, and counters. */
static void honest_probes(void **state)
{
	const char *path = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6";
	struct listed here = { 0 }, there = { 0 };
	struct parser *parser;
	struct parse_file file;

	if (access(path, R_OK) < 0)
		skip();
	file = file_open(path);
	parser = start_parser(honest);
	assert_int_equal(parse_usdt(NULL, &file, listed_add, &here), 0);
	assert_int_equal(parse_usdt(parser, &file, listed_add, &there), 0);
	assert_int_equal(here.n, there.n);
	assert_int_equal(here.sum, there.sum);
	parser_free(parser);
	close(file.fd);
}

static void honest_same_as_here(void **state)
{
	check_same_as_here(program);
}

/* Code without call frame information has rows of a kind of its own where it keeps frame pointers.
 */
static void honest_framed(void **state)
{
	struct parse_file file = file_open(framed);
	struct elf_source source = { .fd = file.fd };
	const struct unwind_frame *frames;
	struct unwind_rows rows;
	struct elf_file elf;
	uint32_t n = 0;

	assert_int_equal(elf_file_read(&source, &elf), 0);
	assert_int_equal(compile_elf(&source, &elf, -1, WORDS_MAX, NULL, &rows), 0);
	frames = (const struct unwind_frame *)(rows.words + unwind_rows_frames(&rows));
	for (uint32_t i = 0; i < rows.n_frames; i++)
		n += frames[i].kind == UNWIND_FRAME_PROVED;
	assert_int_equal(n, 1);
	unwind_rows_fini(&rows);
	elf_file_fini(&elf);
	close(file.fd);
	check_same_as_here(framed);
}

/* Names of a table that a worker read are demangled as here, by workers. */
static void honest_demangles(void **state)
{
	const char *path = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", *name, *name_there;
	struct symtab *here, *there;
	struct parser *parser;
	struct parse_file file;
	struct elf_source source;
	uint64_t start, start_there;
	int n = 0;

	if (access(path, R_OK) < 0)
		skip();
	file = file_open(path);
	source = (struct elf_source){ .fd = file.fd };
	parser = start_parser(honest);
	assert_int_equal(symtab_load(&source, NULL, &here), 0);
	assert_int_equal(parse_symbols(parser, &file, SYMBOLS_MAX, &there), 0);
	for (uint64_t address = 0; address < 4 << 20; address += 8 << 10) {
		if (!symtab_lookup(here, address, &name, &start) || !name)
			continue;
		assert_true(symtab_lookup(there, address, &name_there, &start_there));
		assert_string_equal(name, name_there);
		n += strchr(name, '(') != NULL;
	}
	assert_true(n > 10);
	symtab_free(here);
	symtab_free(there);
	parser_free(parser);
	close(file.fd);
}

static void honest_vdso(void **state)
{
	struct parse_file file = { .fd = -1, .debug_fd = -1, .vdso_size = 8192, .path = "[vdso]" };
	struct parser *parser = start_parser(honest);
	struct symtab *symtab = NULL;
	struct elf_file elf = { 0 };

	if (!getauxval(AT_SYSINFO_EHDR))
		skip();
	assert_int_equal(parse_elf(parser, &file, &elf), 0);
	assert_true(elf.n_segments > 0);
	assert_int_equal(parse_symbols(parser, &file, SYMBOLS_MAX, &symtab), 0);
	symtab_free(symtab);
	elf_file_fini(&elf);
	parser_free(parser);
}

static void perf_add(const struct parse_file *file, const char *text)
{
	assert_int_equal(write(file->fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* A worker reads a perf map as this process does, also what was added since. */
static void honest_perf_map(void **state)
{
	struct parse_file file = file_word("1000 10 one\n2000 20 two words\n3000 10 unfin");
	struct parser *parser = start_parser(honest);
	struct perf_lines first = { 0 }, more = { 0 }, anew = { 0 }, few = { 0 };

	assert_int_equal(parse_perf_lines(parser, &file, NULL, 4096, &first), 0);
	assert_int_equal(first.n, 2);
	assert_false(first.is_continued || first.is_truncated);
	assert_string_equal(first.text + first.functions[1].name, "two words");
	assert_int_equal(first.functions[1].start, 0x2000);
	assert_int_equal(first.functions[1].size, 0x20);
	perf_add(&file, "ished\n");
	assert_int_equal(parse_perf_lines(parser, &file, &first.mark, 4096, &more), 0);
	assert_true(more.is_continued);
	assert_int_equal(more.n, 1);
	assert_string_equal(more.text + more.functions[0].name, "unfinished");
	assert_int_equal(perf_lines_read(file.fd, NULL, 4096, &anew), 0);
	assert_int_equal(anew.n, 3);
	assert_memory_equal(&anew.mark, &more.mark, sizeof(anew.mark));
	/* The first line needs more memory than there is. */
	assert_int_equal(parse_perf_lines(parser, &file, NULL, 16, &few), -E2BIG);
	perf_lines_fini(&first);
	perf_lines_fini(&more);
	perf_lines_fini(&anew);
	perf_lines_fini(&few);
	parser_free(parser);
	close(file.fd);
}

/* A file that is no ELF file is the file's fault, and the worker goes on. */
static void honest_no_elf(void **state)
{
	struct parse_file file = file_word("#!/bin/sh");
	struct parser *parser = start_parser(honest);
	struct parser_stats stats;
	struct elf_file elf;

	assert_int_equal(parse_elf(parser, &file, &elf), -ENOEXEC);
	assert_int_equal(parse_elf(parser, &file, &elf), -ENOEXEC);
	parser_stats(parser, &stats);
	assert_int_equal(stats.given_up, 0);
	assert_int_equal(stats.workers, 1);
	close(file.fd);
	parser_free(parser);
}

static char why[PARSER_WHY_MAX]; /* the reason that the last ask() was given */

/*
 * Asks about a file with this word. Returns the error, and the first bytes of the build-id. A file
 * that was given up is asked about once more: the reason stays the same.
 */
static int ask(struct parser *parser, const char *word, uid_t owner, char id[static 5])
{
	struct parse_file file = file_word(word);
	char first[PARSER_WHY_MAX] = "";
	struct elf_file elf = { 0 };
	int r;

	why[0] = '\0';
	file.why = first;
	file.owner = owner;
	r = parse_elf(parser, &file, &elf);
	file.why = why;
	if (r == -EPROTO) {
		assert_int_equal(parse_elf(parser, &file, &elf), -EPROTO);
		assert_string_equal(why, first);
	}
	strcpy(why, first);
	memcpy(id, elf.build_id, 4);
	id[4] = '\0';
	elf_file_fini(&elf);
	close(file.fd);
	return r;
}

static bool is_in(const char *word, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

/* After each file that takes over a worker, other files are parsed correctly. */
static void hostile_harms_itself(void **state)
{
	static const char *const words[] = { "exit", "crash",	 "huge",   "large", "cut",
					     "kind", "positive", "failed", "empty", "nonsense",
					     "spin", "hang",	 "stall" };
	static const char *const endless[] = { "spin", "hang", "stall" };
	static const char *const deadly[] = { "exit", "crash", "cut" };
	static const char *const wrong_heads[] = { "huge", "large", "kind", "positive", "failed" };
	struct parser *parser = start_parser(hostile);
	struct parser_stats stats;
	char id[5];

	parser_set_time(parser, 5);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		print_message("%s\n", words[i]);
		assert_int_equal(ask(parser, words[i], 1, id), -EPROTO);
		parser_stats(parser, &stats);
		assert_int_equal(stats.given_up, i + 1);
		assert_int_equal(stats.replaced, i + 1);
		/* The second try in ask() did not start a worker. */
		assert_int_equal(stats.requests, 2 * i + 1);
		assert_string_equal(stats.failures[0].path, words[i]);
		assert_string_equal(why, stats.failures[0].reason);
		assert_true(!is_in(words[i], endless, ARRAY_SIZE(endless)) ||
			    strstr(why, "took too long"));
		assert_true(!is_in(words[i], deadly, ARRAY_SIZE(deadly)) || strstr(why, "crashed"));
		/* It is not waited for the rest of an answer whose head is wrong already. */
		assert_true(!is_in(words[i], wrong_heads, ARRAY_SIZE(wrong_heads)) ||
			    strstr(stats.failures[0].reason, "answered nonsense"));
		assert_int_equal(ask(parser, "fine", 1, id), 0);
		assert_string_equal(id, "fine");
		assert_string_equal(why, "");
	}
	parser_free(parser);
}

/* A worker that answers before it is asked is replaced: the answer would be to another file. */
static void hostile_early_answer(void **state)
{
	struct parser *parser = start_parser(hostile);
	struct parser_stats stats;
	char id[5];

	assert_int_equal(ask(parser, "early", 1, id), 0);
	assert_int_equal(ask(parser, "fine", 1, id), 0);
	assert_string_equal(id, "fine");
	parser_stats(parser, &stats);
	assert_int_equal(stats.replaced, 1);
	parser_free(parser);
}

static uint32_t ask_number(struct parser *parser, const char *word, uid_t owner)
{
	uint32_t value;
	char id[5];

	assert_int_equal(ask(parser, word, owner, id), 0);
	memcpy(&value, id, sizeof(value));
	return value;
}

/* A worker that one user's file has taken over never sees a file of another user. */
static void workers_by_owner(void **state)
{
	struct parser *parser = start_parser(hostile);

	assert_int_equal(ask_number(parser, "count", 1), 1);
	assert_int_equal(ask_number(parser, "count", 1), 2);
	assert_int_equal(ask_number(parser, "count", 2), 1);
	assert_int_equal(ask_number(parser, "count", 3), 1);
	assert_int_equal(ask_number(parser, "count", 4), 1);
	assert_int_equal(ask_number(parser, "count", 5), 1);
	assert_int_equal(ask_number(parser, "count", 5), 2);
	assert_int_equal(ask_number(parser, "count", 1), 1);
	parser_free(parser);
}

/*
 * Workers that do not end when the daemon has closed their sockets take no places. They are killed,
 * and a killed process takes its place until it has run once more, which may take a busy host a
 * while: no more workers are started until then.
 */
static void hostile_lingers(void **state)
{
	struct parser *parser = start_parser(hostile);
	char id[5];
	int r;

	for (uid_t owner = 1; owner <= 3 * PARSE_PROCESSES_MAX; owner++) {
		while ((r = ask(parser, "linger", owner, id)) == -EAGAIN)
			usleep(1000);
		assert_int_equal(r, 0);
		assert_string_equal(id, "fine");
	}
	parser_free(parser);
}

/* Asks for the symbols of a hostile file. Returns the error. */
static int ask_symbols_of(struct parser *parser, uid_t owner, uint64_t group)
{
	struct parse_file file = file_word("fine");
	struct symtab *symtab;
	int r;

	file.owner = owner;
	file.group = group;
	file.why = why;
	r = parse_symbols(parser, &file, SYMBOLS_MAX, &symtab);
	close(file.fd);
	return r;
}

static int ask_symbols(struct parser *parser, uid_t owner)
{
	return ask_symbols_of(parser, owner, 0);
}

/*
 * A user whose files take too long has to wait with further ones, until the others have had their
 * turn. A worker is asked if the answer is -EPROTO: the hostile one has no symbols.
 */
static void hostile_user_waits(void **state)
{
	const uid_t evil = 1000, other = 1001, subuid = 100000, other_subuid = 165535,
		    next_subuid = 165536;
	struct parser *parser = start_parser(hostile);
	struct parser_stats stats;
	char id[5];

	parser_set_time(parser, 2);
	while (ask_symbols(parser, evil) != -EAGAIN)
		assert_int_equal(ask(parser, "spin", evil, id), -EPROTO);
	assert_non_null(strstr(why, "files of its owner"));
	parser_stats(parser, &stats);
	assert_int_equal(stats.postponed, 1);
	assert_true(stats.cpu_ns > (uint64_t)PARSER_OWNER_NS * 2 / 100);
	assert_int_equal(ask_symbols(parser, other), -EPROTO);
	assert_int_equal(ask_symbols(parser, 0), -EPROTO);
	/* Without headers, the user's processes would have no mappings. */
	assert_int_equal(ask(parser, "fine", evil, id), 0);
	/* Users of the same container are one user. */
	while (ask_symbols(parser, subuid) != -EAGAIN)
		assert_int_equal(ask(parser, "spin", subuid, id), -EPROTO);
	/* So much that it takes a while until the user's files need not wait any more. */
	assert_int_equal(ask(parser, "spin", subuid, id), -EPROTO);
	assert_int_equal(ask_symbols(parser, other_subuid), -EAGAIN);
	assert_int_equal(ask_symbols(parser, next_subuid), -EPROTO);
	while (ask_symbols(parser, evil) == -EAGAIN)
		usleep(10000);
	parser_free(parser);
}

/* Root of a container takes the share of its control group, and of no other one. */
static void hostile_root_waits(void **state)
{
	const uint64_t evil = 1, other = 2;
	struct parser *parser = start_parser(hostile);
	struct parse_file file = file_word("spin");
	struct elf_file elf;

	parser_set_time(parser, 2);
	file.group = evil;
	while (ask_symbols_of(parser, 0, evil) != -EAGAIN) {
		file.state.inode--; /* another file, as this one was given up */
		assert_int_equal(parse_elf(parser, &file, &elf), -EPROTO);
	}
	assert_non_null(strstr(why, "files of its owner"));
	assert_int_equal(ask_symbols_of(parser, 0, other), -EPROTO);
	assert_int_equal(ask_symbols(parser, 0), -EPROTO);
	assert_int_equal(ask_symbols(parser, 1), -EPROTO);
	while (ask_symbols_of(parser, 0, evil) == -EAGAIN)
		usleep(10000);
	close(file.fd);
	parser_free(parser);
}

/* Returns the group of a process with this text in its file cgroup. */
static uint64_t group_of(int dir_fd, const char *text)
{
	int fd = openat(dir_fd, "cgroup", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return parse_group(dir_fd);
}

/* What a container makes below its own control group is its own, too. */
static void groups_by_unit(void **state)
{
	char path[] = "/tmp/test_parse.XXXXXX";
	uint64_t group;
	int dir_fd;

	assert_non_null(mkdtemp(path));
	dir_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(parse_group(dir_fd), 0);
	assert_int_equal(parse_group(-1), 0);
	group = group_of(dir_fd, "1:cpu:/x/y\n0::/system.slice/docker-a.scope\n");
	assert_int_not_equal(group, 0);
	assert_int_equal(group_of(dir_fd, "0::/system.slice/docker-a.scope/b/c\n"), group);
	assert_int_not_equal(group_of(dir_fd, "0::/system.slice/docker-b.scope\n"), group);
	assert_int_not_equal(group_of(dir_fd, "0::/system.slice\n"), group);
	assert_int_not_equal(group_of(dir_fd, "0::/\n"), 0);
	assert_int_equal(unlinkat(dir_fd, "cgroup", 0), 0);
	close(dir_fd);
	rmdir(path);
}

/* A file that needs a worker of its own gets one, although others could parse it. */
static void worker_alone(void **state)
{
	struct parser *parser = start_parser(hostile);
	struct parse_file file = file_word("count");
	struct parser_stats stats;
	struct elf_file elf;
	uint32_t count;

	file.owner = 1;
	for (int i = 0; i < 8; i++) {
		assert_int_equal(ask_number(parser, "count", 1), 1);
		assert_int_equal(ask_number(parser, "count", 1), 2);
		file.is_alone = true;
		for (int j = 0; j < 2; j++) {
			assert_int_equal(parse_elf(parser, &file, &elf), 0);
			memcpy(&count, elf.build_id, sizeof(count));
			assert_int_equal(count, 1);
			elf_file_fini(&elf);
		}
		file.is_alone = false;
		/* The next file needs none, but is of another user. */
		assert_int_equal(ask_number(parser, "count", 2), 1);
		assert_int_equal(ask_number(parser, "count", 3), 1);
		assert_int_equal(ask_number(parser, "count", 4), 1);
		assert_int_equal(ask_number(parser, "count", 5), 1);
	}
	parser_stats(parser, &stats);
	assert_true(stats.workers <= 5);
	assert_int_equal(stats.replaced, 0);
	close(file.fd);
	parser_free(parser);
}

static void sandbox_holds(void **state)
{
	struct parser *parser = start_parser(hostile);
	uint32_t most;

	assert_int_equal(ask_number(parser, "escape", 1), 0);
	most = ask_number(parser, "eat", 2);
#ifdef __SANITIZE_ADDRESS__ /* it maps terabytes of addresses: no limit is set */
	assert_true(most > 0);
#else
	assert_in_range(most, 16, 512);
#endif
	parser_free(parser);
}

static void zygote_is_replaced(void **state)
{
	struct parser *parser = start_parser("/bin/true");
	struct parser_stats stats;
	char id[5];

	/* The program ends at once: no file can be parsed now, but none is to blame. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ask(parser, "fine", 1, id), -EAGAIN);
		assert_non_null(strstr(why, "the process that starts them ended"));
	}
	parser_stats(parser, &stats);
	assert_int_equal(stats.start_error, -EPIPE);
	parser_free(parser);
}

/*
 * Returns a child of the process that starts workers or is one, and has this state, as in
 * /proc/PID/stat; the first one if the state is 0. Returns 0 if there is none.
 */
static pid_t child_of(pid_t parent, char state)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	assert_non_null(proc);
	while (!found && (entry = readdir(proc))) {
		char path[300], has = 0;
		int of = 0;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		f = atoi(entry->d_name) > 0 ? fopen(path, "re") : NULL;
		if (f && fscanf(f, "%*d (stackd-parse%*[+)] %c %d", &has, &of) == 2 &&
		    of == parent && (!state || has == state))
			found = atoi(entry->d_name);
		if (f)
			fclose(f);
	}
	closedir(proc);
	return found;
}

/* Workers that have ended do not stay as zombies, although none is started after them. */
static void workers_are_reaped(void **state)
{
	struct parser *parser = start_parser(hostile);
	char id[5];
	pid_t zygote;

	for (uid_t owner = 1; owner <= 3; owner++)
		assert_int_equal(ask(parser, "crash", owner, id), -EPROTO);
	zygote = child_of(getpid(), 0);
	assert_true(zygote > 0);
	for (int i = 0; i < 1000 && child_of(zygote, 'Z'); i++)
		usleep(10000);
	assert_int_equal(child_of(zygote, 'Z'), 0);
	parser_free(parser);
}

/* Returns the errno with which a program of the user nobody fails to signal a process. */
static int signal_as_nobody(pid_t pid)
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0)
			_exit(255);
		_exit(kill(pid, 0) < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Other programs that run as nobody cannot stop or kill the workers of a daemon of root. */
static void workers_have_own_user(void **state)
{
	struct parser *parser;
	pid_t zygote, worker;
	char id[5];

	if (geteuid() != 0)
		skip();
	parser = start_parser(hostile);
	assert_int_equal(ask(parser, "fine", 1, id), 0);
	zygote = child_of(getpid(), 0);
	worker = child_of(zygote, 0);
	assert_true(zygote > 0 && worker > 0);
	assert_int_equal(signal_as_nobody(zygote), EPERM);
	assert_int_equal(signal_as_nobody(worker), EPERM);
	parser_free(parser);
}

/* Writes how long a process has run and waited for a CPU, as /proc/PID/schedstat has it. */
static void stat_write(const char *proc, pid_t pid, const char *text)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d", proc, (int)pid);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%d/stat", proc, (int)pid);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void stat_remove(const char *proc, pid_t pid)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%d/stat", proc, (int)pid);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/%d", proc, (int)pid);
	assert_int_equal(rmdir(path), 0);
}

/* The stat files of workers that do not answer: one waits for something, one has used a CPU. */
static const char *const not_starved[] = {
	"7 (worker) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0\n",
	"7 (worker) R 1 1 1 0 -1 0 0 0 0 0 90000 0 0 0\n",
};

/* Asserts that a file is given up if its worker, with this stat file, does not answer. */
static void assert_is_blamed(struct parser *parser, const char *proc, const char *stat)
{
	struct parse_file file = file_word("hang");
	struct elf_file elf;
	char id[5];
	pid_t worker;

	assert_int_equal(ask(parser, "fine", 0, id), 0);
	worker = child_of(child_of(getpid(), 0), 0);
	stat_write(proc, worker, stat);
	assert_int_equal(parse_elf(parser, &file, &elf), -EPROTO);
	stat_remove(proc, worker);
	close(file.fd);
}

/*
 * A file is not to blame if its worker got no CPU until the deadline: it is tried again, and its
 * owner is charged the CPU time that was used. One whose worker did not want to run is.
 */
static void starved_is_tried_again(void **state)
{
	char proc[] = "/tmp/stackd-proc-XXXXXX", id[5];
	struct parser *parser = start_parser(hostile);
	struct parse_file file = file_word("hang");
	struct parser_stats before, stats;
	struct elf_file elf;
	pid_t worker;
	int r;

	assert_non_null(mkdtemp(proc));
	parser_set_time(parser, 5);
	parser_set_proc(parser, proc);
	for (size_t i = 0; i < ARRAY_SIZE(not_starved); i++)
		assert_is_blamed(parser, proc, not_starved[i]);
	parser_stats(parser, &before);
	assert_int_equal(ask(parser, "fine", 0, id), 0);
	worker = child_of(child_of(getpid(), 0), 0);
	stat_write(proc, worker, "7 (worker) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0\n");
	file.why = why;
	assert_int_equal(parse_elf(parser, &file, &elf), -EAGAIN);
	assert_non_null(strstr(why, "too busy"));
	parser_stats(parser, &stats);
	assert_int_equal(stats.given_up, before.given_up);
	assert_int_equal(stats.replaced, before.replaced + 1);
	assert_int_equal(stats.n_failures, before.n_failures + 1);
	assert_in_range(stats.cpu_ns - before.cpu_ns, 0, NS_PER_S / 2);
	stat_remove(proc, worker);
	assert_int_equal(rmdir(proc), 0);
	while ((r = parse_elf(parser, &file, &elf)) == -EAGAIN)
		usleep(10000);
	assert_int_equal(r, -EPROTO);
	parser_stats(parser, &stats);
	assert_int_equal(stats.given_up, before.given_up + 1);
	assert_int_equal(stats.replaced, before.replaced + 2);
	close(file.fd);
	parser_free(parser);
}

static void *parse_elf_thread(void *data)
{
	const struct parse_file *file = data;
	struct elf_file elf = { 0 };
	int r;

	while ((r = parse_elf(thread_parser, file, &elf)) == -EAGAIN)
		usleep(10000);
	elf_file_fini(&elf);
	return (void *)(intptr_t)r;
}

/*
 * A file that is being parsed when the process that starts workers is killed, and its worker with
 * it, is not to blame: another worker is asked. The file says "fine" by then.
 */
static void killed_zygote_blames_none(void **state)
{
	struct parse_file file = file_word("hold");
	struct parser_stats stats;
	pthread_t thread;
	pid_t zygote;
	void *r;

	thread_parser = start_parser(hostile);
	assert_int_equal(lseek(file.fd, 0, SEEK_SET), 0);
	assert_int_equal(pthread_create(&thread, NULL, parse_elf_thread, &file), 0);
	/* The worker moves the position when it has begun. */
	while (lseek(file.fd, 0, SEEK_CUR) != 1)
		usleep(1000);
	assert_int_equal(pwrite(file.fd, "fine", 4, 0), 4);
	zygote = child_of(getpid(), 0);
	assert_true(zygote > 0);
	assert_int_equal(kill(zygote, SIGKILL), 0);
	assert_int_equal(pthread_join(thread, &r), 0);
	assert_int_equal((intptr_t)r, 0);
	parser_stats(thread_parser, &stats);
	assert_int_equal(stats.given_up, 0);
	close(file.fd);
	parser_free(thread_parser);
}

/* Lets a process go on that a test which has failed has left stopped. */
static int children_go_on(void **state)
{
	pid_t zygote = child_of(getpid(), 'T');

	return zygote ? kill(zygote, SIGCONT) : 0;
}

static void *parse_once_thread(void *data)
{
	struct elf_file elf;

	return (void *)(intptr_t)parse_elf(thread_parser, data, &elf);
}

/* A file that hangs keeps nobody waiting when the daemon ends, and is not to blame. */
static void end_waits_for_no_file(void **state)
{
	struct parse_file file = file_word("hold");
	struct parser_stats stats;
	pthread_t thread;
	void *r;

	thread_parser = start_parser(hostile);
	assert_int_equal(lseek(file.fd, 0, SEEK_SET), 0);
	assert_int_equal(pthread_create(&thread, NULL, parse_once_thread, &file), 0);
	while (lseek(file.fd, 0, SEEK_CUR) != 1)
		usleep(1000);
	parser_end(thread_parser);
	assert_int_equal(pthread_join(thread, &r), 0);
	assert_int_equal((intptr_t)r, -EAGAIN);
	parser_stats(thread_parser, &stats);
	assert_int_equal(stats.given_up, 0);
	close(file.fd);
	parser_free(thread_parser);
}

/* The statistics wait for no process that starts workers and does not answer. */
static void stopped_zygote_hides_nothing(void **state)
{
	struct parse_file file = file_word("fine");
	struct parser_stats stats;
	pthread_t thread;
	char id[5];
	pid_t zygote;
	void *r;

	thread_parser = start_parser(hostile);
	assert_int_equal(ask(thread_parser, "fine", 1, id), 0); /* now the process has its name */
	zygote = child_of(getpid(), 0);
	assert_true(zygote > 0);
	assert_int_equal(kill(zygote, SIGSTOP), 0);
	assert_int_equal(pthread_create(&thread, NULL, parse_elf_thread, &file), 0);
	do {
		parser_stats(thread_parser, &stats);
	} while (stats.requests < 2);
	for (int i = 0; i < 100; i++) {
		parser_stats(thread_parser, &stats);
		usleep(1000);
	}
	assert_int_equal(pthread_tryjoin_np(thread, &r), EBUSY);
	assert_int_equal(kill(zygote, SIGCONT), 0);
	assert_int_equal(pthread_join(thread, &r), 0);
	assert_int_equal((intptr_t)r, 0);
	close(file.fd);
	parser_free(thread_parser);
}

/* Attaches a tracer to a process: until the tracer ends, nobody can reap the process. */
static pid_t tracer_start(pid_t pid)
{
	int ends[2];
	char done = 0;
	pid_t tracer;

	assert_int_equal(pipe(ends), 0);
	tracer = fork();
	if (!tracer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		done = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
		if (write(ends[1], &done, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ends[0], &done, 1), 1);
	close(ends[0]);
	close(ends[1]);
	if (!done) {
		kill(tracer, SIGKILL);
		waitpid(tracer, NULL, 0);
		skip();
	}
	return tracer;
}

/*
 * A process that starts workers and cannot be reaped is replaced and reaped later. When there are
 * too many such processes, no further one is started.
 */
static void zygotes_are_left(void **state)
{
	struct parser *parser = start_parser(hostile);
	pid_t zygotes[4], tracers[ARRAY_SIZE(zygotes)];
	struct parser_stats stats;
	char id[5];
	int r;

	assert_int_equal(ask(parser, "fine", 0, id), 0);
	parser_set_time(parser, 10);
	for (size_t i = 0; i < ARRAY_SIZE(zygotes); i++) {
		zygotes[i] = child_of(getpid(), 'S');
		assert_true(zygotes[i] > 0);
		tracers[i] = tracer_start(zygotes[i]);
		assert_int_equal(kill(zygotes[i], SIGKILL), 0);
		/* Another one is started at once, but not within a second of the last start. */
		while ((r = ask(parser, "fine", 1 + (uid_t)i, id)) == -EAGAIN &&
		       !strstr(why, "too many"))
			usleep(10000);
		parser_stats(parser, &stats);
		assert_int_equal(stats.hanging, i + 1);
	}
	assert_int_equal(r, -EAGAIN);
	assert_int_equal(stats.start_error, -EBUSY);
	for (size_t i = 0; i < ARRAY_SIZE(tracers); i++) {
		kill(tracers[i], SIGKILL);
		waitpid(tracers[i], NULL, 0);
	}
	do {
		usleep(10000);
		parser_stats(parser, &stats);
	} while (stats.hanging);
	for (size_t i = 0; i < ARRAY_SIZE(zygotes); i++)
		assert_int_equal(waitpid(zygotes[i], NULL, WNOHANG), -1);
	parser_set_time(parser, 100);
	while ((r = ask(parser, "fine", 1, id)) == -EAGAIN)
		usleep(10000);
	assert_int_equal(r, 0);
	parser_free(parser);
}

/* Copies bytes, decodes the copy and frees what this gives. Returns the error. */
static int symbols_try(const void *bytes, size_t size)
{
	struct symtab_arrays arrays = { 0 };
	void *data = malloc(size + 1);
	int r;

	memcpy(data, bytes, size);
	r = answer_symbols_decode(data, size, &arrays);
	symtab_arrays_fini(&arrays);
	free(data);
	return r;
}

struct small_symbols {
	struct answer_symbols head;
	uint32_t starts[3], sizes[3], names[3];
	char text[8];
};

static const struct small_symbols small = {
	.head = { .n = 3, .base = 0x1000, .text_size = 8 },
	.starts = { 0, 0, 16 },
	.sizes = { 32, 8, 4 },
	.names = { 0, 4, ANSWER_NAMELESS },
	.text = "abc\0def",
};

static void symbols_refused(void **state)
{
	size_t size = offsetof(struct small_symbols, text) + 8;
	struct small_symbols s;

	assert_int_equal(symbols_try(&small, size), 0);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(symbols_try(&small, i), -EPROTO);
	assert_int_equal(symbols_try(&small, size + 1), -EPROTO);
#define REFUSED(change)                                           \
	do {                                                      \
		s = small;                                        \
		change;                                           \
		assert_int_equal(symbols_try(&s, size), -EPROTO); \
	} while (0)
	REFUSED(s.head.n = UINT64_C(1) << 32);
	REFUSED(s.head.n = UINT64_MAX / 12 + 2);
	REFUSED(s.head.n = 2);
	REFUSED(s.head.text_size = UINT64_MAX);
	REFUSED(s.head.n_signals = 5);
	REFUSED(s.starts[0] = 1);
	REFUSED(s.starts[1] = 17);
	REFUSED(s.head.base = UINT64_MAX - 3);
	REFUSED(s.sizes[1] = 32);
	REFUSED(s.sizes[1] = 33);
	REFUSED(s.sizes[2] = 0);
	REFUSED(s.names[0] = 8);
	REFUSED(s.text[7] = 'x');
#undef REFUSED
}

struct small_functions {
	uint64_t n, text_size;
	struct {
		uint64_t offset;
		uint32_t counter, pad;
	} places[2];
	char text[8];
};

static const struct small_functions few = {
	.n = 2,
	.text_size = 8,
	.places = { { .offset = 16 }, { .offset = 32 } },
	.text = "a:b\0c:d",
};

static void functions_refused(void **state)
{
	struct answer_functions list = { .max_bytes = sizeof(few) };
	struct small_functions f;
	size_t size;
	void *data;

	assert_int_equal(answer_functions_add(&list, "a:b", 16, 0), 0);
	assert_int_equal(answer_functions_add(&list, "c:de", 32, 0), -E2BIG);
	assert_int_equal(answer_functions_add(&list, "c:d", 32, 0), 0);
	assert_int_equal(answer_functions_encode(&list, &data, &size), 0);
	assert_int_equal(size, sizeof(few));
	assert_memory_equal(data, &few, size);
	free(data);
	answer_functions_fini(&list);
	assert_int_equal(answer_functions_check(&few, sizeof(few), true), 0);
	assert_int_equal(answer_functions_check(&few, sizeof(few), false), 0);
	for (size_t i = 0; i < sizeof(few); i++)
		assert_int_equal(answer_functions_check(&few, i, false), -EPROTO);
#define REFUSED(change, has_provider)                                                           \
	do {                                                                                    \
		f = few;                                                                        \
		change;                                                                         \
		assert_int_equal(answer_functions_check(&f, sizeof(f), has_provider), -EPROTO); \
	} while (0)
	REFUSED(f.n = 1, false);
	REFUSED(f.n = 3, false);
	REFUSED(f.n = UINT64_MAX / sizeof(f.places[0]) + 2, false);
	REFUSED(f.text_size = 9, false);
	REFUSED(f.text_size = UINT64_MAX, false);
	REFUSED(f.places[1].offset = UINT64_MAX, false);
	/* only probes have counters */
	REFUSED(f.places[1].counter = ELF_FUNCTION_SORTS, false);
	REFUSED(f.text[7] = 'x', false);
	REFUSED(f.text[0] = 0, false);
	REFUSED(f.text[3] = 'x', false);
	REFUSED(f.text[5] = 'x', true);
#undef REFUSED
}

/* A part of a perf map with two functions. */
struct perf_answer {
	struct answer_perf head;
	struct perf_function functions[2];
	char text[8];
};

static const struct perf_answer perf = {
	.head = { .mark = { .read = 30, .last_n = 15, .last_hash = 1 }, .n = 2, .text_size = 8 },
	.functions = { { 0x1000, 16, 0 }, { UINT64_MAX - 8, 8, 4 } },
	.text = "abc\0def",
};

static int perf_try(const void *bytes, size_t size)
{
	struct perf_lines lines = { 0 };
	void *data = malloc(size + 1);
	int r;

	memcpy(data, bytes, size);
	r = answer_perf_decode(&data, size, &lines);
	assert_int_equal(data == NULL, r == 0);
	perf_lines_fini(&lines);
	free(data);
	return r;
}

static void perf_map_refused(void **state)
{
	struct perf_answer p;

	assert_int_equal(perf_try(&perf, sizeof(perf)), 0);
	for (size_t i = 0; i < sizeof(perf); i++)
		assert_int_equal(perf_try(&perf, i), -EPROTO);
#define REFUSED(change)                                             \
	do {                                                        \
		p = perf;                                           \
		change;                                             \
		assert_int_equal(perf_try(&p, sizeof(p)), -EPROTO); \
	} while (0)
	REFUSED(p.head.n = 1);
	REFUSED(p.head.n = 3);
	REFUSED(p.head.n = UINT64_MAX / sizeof(p.functions[0]) + 2);
	REFUSED(p.head.text_size = 9);
	REFUSED(p.head.text_size = UINT64_MAX);
	REFUSED(p.head.mark.read = UINT64_MAX);
	REFUSED(p.head.mark.read = 14); /* the last line would begin before the file */
	REFUSED(p.head.mark.last_n = UINT64_MAX);
	REFUSED(p.head.is_continued = 2);
	REFUSED(p.head.is_truncated = 2);
	REFUSED(p.functions[0].size = 0);
	REFUSED(p.functions[1].size = 9); /* beyond the last address */
	REFUSED(p.functions[1].name = 0);
	REFUSED(p.functions[1].name = 3); /* an empty name */
	REFUSED(p.functions[1].name = 8);
	REFUSED(p.text[7] = 'x');
#undef REFUSED
}

static int rows_try(const void *bytes, size_t size, uint64_t code_bytes)
{
	struct unwind_rows rows = { 0 };
	void *data = malloc(size + 1);
	int r;

	memcpy(data, bytes, size);
	r = answer_rows_decode(&data, size, code_bytes, &rows);
	unwind_rows_fini(&rows);
	free(data);
	return r;
}

/* Tries every value of each word of a real table that differs in one bit or is a limit. */
static void rows_refused(void **state)
{
	struct parse_file file = file_open(program);
	struct elf_source source = { .fd = file.fd };
	struct answer_part parts[ANSWER_ROWS_PARTS];
	struct unwind_extent extent;
	struct answer_rows tail;
	struct unwind_rows rows;
	struct elf_file elf;
	uint32_t *bytes;
	size_t size;

	assert_int_equal(elf_file_read(&source, &elf), 0);
	assert_true(compile_elf_extent(&elf, &extent));
	assert_int_equal(compile_elf(&source, &elf, -1, WORDS_MAX, NULL, &rows), 0);
	answer_rows_encode(&rows, &tail, parts);
	size = parts[0].size + parts[1].size;
	bytes = malloc(size);
	memcpy(bytes, parts[0].data, parts[0].size);
	memcpy((char *)bytes + parts[0].size, parts[1].data, parts[1].size);
	assert_int_equal(rows_try(bytes, size, extent.size), 0);
	assert_int_equal(rows_try(bytes, size - 8, extent.size), -EPROTO);
	assert_int_equal(rows_try(bytes, 0, extent.size), -EPROTO);
	for (size_t i = 0; i < 4; i++) {
		uint32_t *member = &bytes[parts[0].size / 4 + i], was = *member;

		*member = UINT32_MAX;
		if (i != 1) /* n_rows only counts */
			assert_int_equal(rows_try(bytes, size, extent.size), -EPROTO);
		*member = was;
	}
	/* The position of the first part, and the first row of its first page. */
	for (int bit = 0; bit < 32; bit++) {
		bytes[0] ^= 1U << bit;
		assert_int_equal(rows_try(bytes, size, extent.size), -EPROTO);
		bytes[0] ^= 1U << bit;
	}
	bytes[bytes[0] + 16] = 0xffff0000;
	assert_int_equal(rows_try(bytes, size, extent.size), -EPROTO);
	free(bytes);
	unwind_rows_fini(&rows);
	elf_file_fini(&elf);
	close(file.fd);
}

static void elf_refused(void **state)
{
	struct elf_segment segments[] = { { .offset = 1, .size = 2, .address = 3 } };
	char name[] = "x.debug";
	struct elf_file file = {
		.build_id_size = 20, .n_segments = 1, .segments = segments, .debug_name = name
	};
	struct elf_file out;
	char *bytes;
	void *data;
	size_t size;

	assert_int_equal(answer_elf_encode(&file, &data, &size), 0);
	bytes = data;
	assert_int_equal(answer_elf_decode(data, size, &out), 0);
	assert_string_equal(out.debug_name, "x.debug");
	elf_file_fini(&out);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(answer_elf_decode(data, i, &out), -EPROTO);
	bytes[size - 6] = '/'; /* the name would lead to another directory */
	assert_int_equal(answer_elf_decode(data, size, &out), -EPROTO);
	bytes[size - 6] = '.';
	memset(bytes + ELF_BUILD_ID_MAX, 0xff, 4); /* build_id_size */
	assert_int_equal(answer_elf_decode(data, size, &out), -EPROTO);
	free(data);
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(honest_same_as_here),
		cmocka_unit_test(honest_framed),
		cmocka_unit_test(honest_vdso),
		cmocka_unit_test(honest_demangles),
		cmocka_unit_test(honest_perf_map),
		cmocka_unit_test(perf_map_refused),
		cmocka_unit_test(honest_no_elf),
		cmocka_unit_test(hostile_harms_itself),
		cmocka_unit_test(hostile_early_answer),
		cmocka_unit_test(workers_by_owner),
		cmocka_unit_test(worker_alone),
		cmocka_unit_test(hostile_user_waits),
		cmocka_unit_test(hostile_root_waits),
		cmocka_unit_test(groups_by_unit),
		cmocka_unit_test(hostile_lingers),
		cmocka_unit_test(sandbox_holds),
		cmocka_unit_test(zygote_is_replaced),
		cmocka_unit_test_teardown(stopped_zygote_hides_nothing, children_go_on),
		cmocka_unit_test(end_waits_for_no_file),
		cmocka_unit_test(symbols_refused),
		cmocka_unit_test(workers_are_reaped),
		cmocka_unit_test(zygotes_are_left),
		cmocka_unit_test(honest_lists),
		cmocka_unit_test(honest_probes),
		cmocka_unit_test(functions_refused),
		cmocka_unit_test(rows_refused),
		cmocka_unit_test(elf_refused),
		cmocka_unit_test(workers_have_own_user),
		cmocka_unit_test(starved_is_tried_again),
		cmocka_unit_test(killed_zygote_blames_none),
	};

	if (argc != 5)
		return EXIT_FAILURE;
	honest = argv[1];
	hostile = argv[2];
	program = argv[3];
	framed = argv[4];
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arguments: the fixture library, the same without .symtab, and the output of nm for the first. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/elf/file.h"
#include "daemon/module/internal.h"
#include "daemon/module/module.h"
#include "daemon/symbol/symtab.h"

static const char *full_path, *stripped_path, *nm_path;

/* One line of nm -S. */
struct nm_symbol {
	uint64_t start, size;
	char name[128];
};

struct nm {
	struct nm_symbol symbols[4096];
	size_t n;
};

static struct nm nm;

static struct symtab *load(const char *path)
{
	struct elf_source source = { .fd = open(path, O_RDONLY | O_CLOEXEC) };
	struct symtab *symtab;

	assert_true(source.fd >= 0);
	assert_int_equal(symtab_load(&source, NULL, &symtab), 0);
	close(source.fd);
	return symtab;
}

static int nm_read(void **state)
{
	FILE *in = fopen(nm_path, "re");
	char line[512];

	if (!in)
		return -1;
	while (fgets(line, sizeof(line), in) && nm.n < ARRAY_SIZE(nm.symbols)) {
		struct nm_symbol *s = &nm.symbols[nm.n];
		unsigned long long start, size;
		char type;

		if (sscanf(line, "%llx %llx %c %127s", &start, &size, &type, s->name) != 4) {
			size = 0;
			if (sscanf(line, "%llx %c %127s", &start, &type, s->name) != 3)
				continue;
		}
		if (!strchr("tTwWi", type))
			continue;
		s->start = start;
		s->size = size;
		nm.n++;
	}
	fclose(in);
	return nm.n > 10 ? 0 : -1;
}

static const struct nm_symbol *nm_find(const char *name)
{
	for (size_t i = 0; i < nm.n; i++) {
		if (!strcmp(nm.symbols[i].name, name))
			return &nm.symbols[i];
	}
	fail_msg("nm does not list %s", name);
	return NULL;
}

/* Returns the smallest function in the output of nm that holds the address. */
static const struct nm_symbol *nm_at(uint64_t address)
{
	const struct nm_symbol *best = NULL;

	for (size_t i = 0; i < nm.n; i++) {
		const struct nm_symbol *s = &nm.symbols[i];

		if (address - s->start < s->size && (!best || s->size < best->size))
			best = s;
	}
	return best;
}

static const char *name_at(struct symtab *symtab, uint64_t address)
{
	const char *name;
	uint64_t start;

	return symtab_lookup(symtab, address, &name, &start) ? name : NULL;
}

static void agrees_with_nm_on_every_byte(void **state)
{
	struct symtab *symtab = load(full_path);
	size_t named = 0;

	for (uint64_t address = 0; address < 0x10000; address++) {
		const struct nm_symbol *expected = nm_at(address);
		const char *name;
		uint64_t start;

		if (!expected)
			continue;
		assert_true(symtab_lookup(symtab, address, &name, &start));
		assert_true(start == expected->start);
		assert_true(nm_find(name)->start == expected->start);
		assert_true(nm_find(name)->size == expected->size);
		named++;
	}
	assert_true(named > 60);
	symtab_free(symtab);
}

static void inner_before_outer(void **state)
{
	const struct nm_symbol *outer = nm_find("fixture_outer");
	struct symtab *symtab = load(full_path);

	assert_string_equal(name_at(symtab, outer->start), "fixture_outer");
	assert_string_equal(name_at(symtab, outer->start + 16), "fixture_inner");
	assert_string_equal(name_at(symtab, outer->start + 23), "fixture_inner");
	/* Behind the inner function, at a label without a size. */
	assert_string_equal(name_at(symtab, outer->start + 24), "fixture_outer");
	assert_string_equal(name_at(symtab, outer->start + 39), "fixture_outer");
	assert_null(name_at(symtab, outer->start + 40));
	assert_null(name_at(symtab, outer->start + 55));
	symtab_free(symtab);
}

static void sizeless_reach_to_the_next_or_the_section_end(void **state)
{
	const struct nm_symbol *bare = nm_find("fixture_bare"), *tail = nm_find("fixture_tail");
	struct symtab *symtab = load(full_path);

	assert_int_equal(bare->size, 0);
	assert_string_equal(name_at(symtab, bare->start), "fixture_bare");
	assert_string_equal(name_at(symtab, bare->start + 31), "fixture_bare");
	assert_string_equal(name_at(symtab, bare->start + 32), "fixture_next");
	assert_string_equal(name_at(symtab, bare->start + 47), "fixture_next");
	assert_string_equal(name_at(symtab, tail->start + 23), "fixture_tail");
	assert_null(name_at(symtab, tail->start + 24));
	assert_null(name_at(symtab, tail->start + 60));
	assert_null(name_at(symtab, UINT64_MAX));
	assert_null(name_at(symtab, 0));
	symtab_free(symtab);
}

static void stripped_names_only_what_it_knows(void **state)
{
	const struct nm_symbol *hidden = nm_find("fixture_hidden");
	const struct nm_symbol *call = nm_find("fixture_call");
	const struct nm_symbol *bare = nm_find("fixture_bare");
	struct symtab *symtab = load(stripped_path), *full = load(full_path);

	assert_string_equal(name_at(full, hidden->start), "fixture_hidden");
	assert_string_equal(name_at(symtab, call->start), "fixture_call");
	assert_string_equal(name_at(symtab, call->start + call->size - 1), "fixture_call");
	assert_null(name_at(symtab, hidden->start));
	assert_null(name_at(symtab, hidden->start + hidden->size - 1));
	assert_null(name_at(symtab, bare->start + 8));
	assert_true(symtab_bytes(symtab) < symtab_bytes(full));
	assert_false(symtab_equal(symtab, full));
	symtab_free(symtab);
	symtab_free(full);
}

static void reads_build_id_and_segments(void **state)
{
	struct elf_source source = { .fd = open(full_path, O_RDONLY | O_CLOEXEC) };
	uint64_t address, text = nm_find("fixture_call")->start;
	struct elf_file file;

	assert_int_equal(elf_file_read(&source, &file), 0);
	close(source.fd);
	assert_int_equal(file.build_id_size, 20);
	assert_true(file.n_segments >= 2);
	for (size_t i = 0; i < file.n_segments; i++) {
		const struct elf_segment *s = &file.segments[i];

		if (!s->is_exec || text < s->address || text - s->address >= s->size)
			continue;
		assert_true(elf_file_address(&file, s->offset + (text - s->address), &address));
		assert_true(address == text);
	}
	assert_false(elf_file_address(&file, UINT64_C(1) << 40, &address));
	elf_file_fini(&file);
}

static char *read_whole(const char *path, size_t *size_out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *bytes;

	assert_true(fd >= 0 && !fstat(fd, &st));
	bytes = malloc((size_t)st.st_size);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
	close(fd);
	*size_out = (size_t)st.st_size;
	return bytes;
}

/*
 * True if the result is an error, or a table whose names can be read, for any content of the file.
 */
static bool survives(const char *bytes, size_t size)
{
	struct elf_source source = { .fd = -1, .image = bytes, .image_size = size };
	struct symtab *symtab = NULL;
	struct elf_file file;
	uint64_t address;
	int r;

	r = elf_file_read(&source, &file);
	if (r == 0) {
		elf_file_address(&file, 0x1000, &address);
		elf_file_fini(&file);
	}
	assert_true(r == 0 || r == -ENOEXEC || r == -EBADMSG);
	r = symtab_load(&source, NULL, &symtab);
	assert_true(r == 0 || r == -ENOEXEC || r == -EBADMSG || r == -E2BIG);
	for (address = 0; r == 0 && address < 0x4000; address += 16) {
		const char *name = name_at(symtab, address);

		assert_true(!name || strlen(name) <= 4096);
	}
	symtab_free(symtab);
	return r == 0;
}

static void survives_damage(void **state)
{
	_cleanup_(freep) char *good = NULL;
	size_t size, loaded = 0, refused = 0;
	unsigned seed = 20240601;

	good = read_whole(full_path, &size);
	for (int i = 0; i < 4000; i++) {
		char *bytes = malloc(size);
		bool is_header = i % 2;

		assert_non_null(bytes);
		memcpy(bytes, good, size);
		for (int j = 0; j < 1 + i % 8; j++) {
			/*
			 * Cuts the file at many lengths: section headers are at its end, file and
			 * program headers at its start.
			 */
			size_t at = (size_t)rand_r(&seed) % (is_header ? 2048 : size);

			if (is_header && j % 2)
				at = size - 1 - at;
			bytes[at] = (char)rand_r(&seed);
		}
		*(survives(bytes, size) ? &loaded : &refused) += 1;
		free(bytes);
	}
	assert_true(loaded > 100 && refused > 100);
}

static void survives_cutting(void **state)
{
	_cleanup_(freep) char *good = NULL;
	size_t size;

	good = read_whole(full_path, &size);
	for (size_t n = 0; n < size; n += n < 256 ? 1 : 97) {
		char *bytes = malloc(n + 1);

		assert_non_null(bytes);
		memcpy(bytes, good, n);
		survives(bytes, n);
		free(bytes);
	}
	assert_true(survives(good, size));
}

static void copy_to(const char *from, const char *path)
{
	_cleanup_(freep) char *bytes = NULL;
	size_t size;
	int fd;

	bytes = read_whole(from, &size);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), (ssize_t)size);
	close(fd);
}

/* Makes a copy of a file that the test may change or remove. */
static void copy_file(const char *from, char *path)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	copy_to(from, path);
}

static struct module *get(struct module_registry *registry, const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	struct module *module = NULL;

	assert_true(fd >= 0);
	assert_int_equal(module_get(registry, -1, fd, path, &module), 0);
	close(fd);
	return module;
}

/* Lets a live process use the module and end, which closes the file. */
static void use_once(struct module_registry *registry, struct module *module)
{
	module_add_live(module);
	module_drop_live(module);
	assert_true(module_registry_settle(registry));
}

static size_t count(struct module_registry *registry)
{
	struct module_stats stats;

	module_registry_stats(registry, &stats);
	return stats.modules + stats.unused;
}

static void a_program_may_come_again(void **state)
{
	struct module_registry *registry = module_registry_new(1 << 20);
	struct module *module = get(registry, full_path);
	struct module_stats stats;
	struct symtab *symbols;

	use_once(registry, module);
	module_unref(module);
	module_registry_stats(registry, &stats);
	assert_int_equal(stats.modules, 0);
	assert_int_equal(stats.unused, 1);
	assert_int_equal(stats.files, 0);
	assert_true(stats.symbol_bytes > 0);
	assert_ptr_equal(get(registry, full_path), module);
	symbols = module_get_symbols(module);
	assert_non_null(symbols);
	module_registry_put_symbols(registry, symbols);
	use_once(registry, module);
	module_registry_drop_idle(registry, 0); /* a module with a reference stays */
	assert_int_equal(count(registry), 1);
	module_unref(module);
	assert_int_equal(count(registry), 1);
	module_registry_drop_idle(registry, 0);
	module_registry_stats(registry, &stats);
	assert_int_equal(stats.unused, 0);
	assert_int_equal(stats.symbol_bytes, 0);
	module_registry_free(registry);
}

/* There is a limit of the modules that nothing refers to; the one left first goes first. */
static void not_all_programs_are_kept(void **state)
{
	enum { FILES = 300, KEPT = 256 };
	char dir[] = "/tmp/test_module.XXXXXX", path[PATH_MAX];
	struct module_registry *registry = module_registry_new(1 << 20);
	struct module *module;

	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		copy_to(full_path, path);
		module = get(registry, path);
		use_once(registry, module);
		module_unref(module);
		assert_int_equal(count(registry), i < KEPT ? i + 1 : KEPT);
	}
	module = get(registry, path); /* the last one is still there */
	assert_int_equal(count(registry), KEPT);
	use_once(registry, module);
	module_unref(module);
	snprintf(path, sizeof(path), "%s/0", dir);
	module = get(registry, path);
	assert_int_equal(count(registry), KEPT + 1);
	module_unref(module);
	module_registry_free(registry);
	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		unlink(path);
	}
	rmdir(dir);
}

static void equal_files_share_one_table(void **state)
{
	char dir[] = "/tmp/test_module.XXXXXX", copy[PATH_MAX];
	struct module_registry *registry = module_registry_new(1 << 20);
	struct module *a, *b, *again;
	struct symtab *x, *y;
	struct module_stats stats;

	assert_non_null(mkdtemp(dir));
	snprintf(copy, sizeof(copy), "%s%s", dir, strrchr(full_path, '/'));
	copy_to(full_path, copy);
	a = get(registry, full_path);
	b = get(registry, copy);
	again = get(registry, full_path);
	assert_ptr_equal(a, again);
	assert_ptr_not_equal(a, b);
	assert_true(module_file_id(a) && module_file_id(a) == module_file_id(b));
	x = module_get_symbols(a);
	y = module_get_symbols(b);
	assert_non_null(x);
	assert_ptr_equal(x, y);
	module_registry_stats(registry, &stats);
	assert_int_equal(stats.modules, 2);
	assert_int_equal(stats.files, 2);
	assert_int_equal(stats.symbol_bytes, symtab_bytes(x));
	module_registry_put_symbols(registry, x);
	module_registry_put_symbols(registry, y);
	module_unref(a);
	module_unref(b);
	module_unref(again);
	module_registry_stats(registry, &stats);
	assert_int_equal(stats.modules, 0);
	assert_int_equal(stats.files, 0);
	assert_int_equal(stats.symbol_bytes, 0);
	module_registry_free(registry);
	unlink(copy);
	rmdir(dir);
}

static void evicts_the_oldest_and_reads_it_again(void **state)
{
	char copy[] = "/tmp/test_module.XXXXXX";
	struct symtab *measure = load(full_path), *symbols, *other;
	struct module_registry *registry = module_registry_new(symtab_bytes(measure) + 128);
	struct module *full, *stripped;
	struct module_stats stats;

	copy_file(full_path, copy);
	full = get(registry, copy);
	unlink(copy); /* the module keeps it open */
	stripped = get(registry, stripped_path);
	symbols = module_get_symbols(full);
	assert_non_null(symbols);
	other = module_get_symbols(
		stripped); /* memory is above the limit, but the first table is in use */
	assert_non_null(other);
	module_registry_stats(registry, &stats);
	assert_int_equal(stats.evictions, 0);
	module_registry_put_symbols(registry, symbols);
	module_registry_stats(registry, &stats);
	assert_int_equal(stats.evictions, 1);
	assert_int_equal(stats.symbol_bytes, symtab_bytes(other));
	module_registry_put_symbols(registry, other);

	symbols = module_get_symbols(full);
	assert_non_null(symbols);
	assert_true(symtab_equal(symbols, measure));
	module_registry_stats(registry, &stats);
	assert_int_equal(stats.evictions, 2);
	module_registry_put_symbols(registry, symbols);
	module_unref(full);
	module_unref(stripped);
	module_registry_free(registry);
	symtab_free(measure);
}

static void drops_what_is_idle_and_reads_it_again(void **state)
{
	struct module_registry *registry = module_registry_new(1 << 20);
	struct module *module = get(registry, full_path);
	struct symtab *symbols = module_get_symbols(module);
	struct module_stats stats;

	assert_non_null(symbols);
	module_registry_drop_idle(registry, 0); /* not evicted: in use */
	module_registry_stats(registry, &stats);
	assert_true(stats.symbol_bytes > 0);
	module_registry_put_symbols(registry, symbols);
	module_registry_drop_idle(registry, NS_PER_S); /* not dropped: it was used lately */
	module_registry_stats(registry, &stats);
	assert_true(stats.symbol_bytes > 0);
	module_registry_drop_idle(registry, 0);
	module_registry_stats(registry, &stats);
	assert_int_equal(stats.symbol_bytes, 0);
	assert_int_equal(stats.evictions, 0);
	symbols = module_get_symbols(module);
	assert_non_null(symbols);
	module_registry_put_symbols(registry, symbols);
	module_unref(module);
	module_registry_free(registry);
}

static void a_table_over_the_limit_is_refused(void **state)
{
	struct module_registry *registry = module_registry_new(256);
	struct module *module = get(registry, full_path);
	struct module_stats stats;

	assert_null(module_get_symbols(module));
	assert_null(module_get_symbols(module));
	module_registry_stats(registry, &stats);
	assert_int_equal(stats.unreadable, 1);
	assert_int_equal(stats.symbol_bytes, 0);
	module_unref(module);
	module_registry_free(registry);
}

static void settles_when_nobody_lives(void **state)
{
	char copy[] = "/tmp/test_module.XXXXXX";
	struct module_registry *registry = module_registry_new(1 << 20);
	struct module *module;
	struct module_stats stats;
	struct symtab *symbols;

	copy_file(full_path, copy);
	module = get(registry, copy);
	unlink(copy);
	module_add_live(module);
	module_add_live(module);
	module_drop_live(module);
	assert_false(module_registry_settle(registry));
	module_drop_live(module);
	assert_true(module_registry_settle(registry));
	assert_false(module_registry_settle(registry));
	module_registry_stats(registry, &stats);
	assert_int_equal(stats.files, 0);
	symbols = module_get_symbols(module);
	assert_non_null(symbols);
	assert_string_equal(name_at(symbols, nm_find("fixture_call")->start), "fixture_call");
	module_registry_put_symbols(registry, symbols);
	module_unref(module);
	module_registry_free(registry);
}

/* The process runs the old contents, so the new symbols would be wrong. */
static void a_file_written_over_has_no_names(void **state)
{
	char copy[] = "/tmp/test_module.XXXXXX";
	struct module_registry *registry = module_registry_new(1 << 20);
	struct module *module;
	int fd;

	copy_file(full_path, copy);
	module = get(registry, copy);
	fd = open(copy, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	assert_null(module_get_symbols(module));
	module_unref(module);
	module_registry_free(registry);
	unlink(copy);
}

static void opens_only_regular_files(void **state)
{
	char directory[] = "/tmp/test_module.XXXXXX", path[64];
	struct module_registry *registry = module_registry_new(1 << 20);
	struct module *module;
	int fd;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/fifo", directory);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(10); /* opening the FIFO would never return */
	fd = open(path, O_PATH | O_CLOEXEC);
	assert_int_equal(module_get(registry, -1, fd, path, &module), -EINVAL);
	close(fd);
	unlink(path);
	rmdir(directory);
	fd = open("/dev/zero", O_PATH | O_CLOEXEC);
	assert_int_equal(module_get(registry, -1, fd, "/dev/zero", &module), -EINVAL);
	close(fd);
	alarm(0);
	fd = open(nm_path, O_PATH | O_CLOEXEC); /* a regular file that is not an ELF file */
	assert_int_equal(module_get(registry, -1, fd, nm_path, &module), 0);
	close(fd);
	assert_false(module_is_elf(module));
	assert_null(module_get_symbols(module));
	assert_true(module_file_id(module) != 0);
	assert_int_equal(module_address(module, 0x123), 0x123);
	module_unref(module);
	module_registry_free(registry);
}

/* Asserts that the file recorded with this path opens as the file `expected`; NULL: as none. */
static void assert_opens(struct module_registry *registry, uint64_t id, const char *path,
			 const char *expected)
{
	struct stat st, want;
	int fd, debug_fd, r = module_registry_open(registry, id, path, 3, &fd, &debug_fd);

	assert_int_equal(r, expected ? 0 : -ENOENT);
	if (r)
		return;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(stat(expected, &want), 0);
	assert_int_equal(st.st_ino, want.st_ino);
	close(fd);
	closep(&debug_fd);
}

/* A changed copy keeps the build-id; nobody else's frames may be looked up in it. */
static void a_copy_does_not_answer_for_the_file(void **state)
{
	char copy[] = "/tmp/test_module.XXXXXX", real[PATH_MAX];
	struct module_registry *registry = module_registry_new(1 << 20);
	struct module *module;

	assert_non_null(realpath(full_path, real));
	copy_file(full_path, copy);
	module = get(registry, copy);
	assert_opens(registry, module_file_id(module), real, real);
	assert_opens(registry, module_file_id(module), copy, copy);
	assert_opens(registry, module_file_id(module), "/nowhere", NULL);
	unlink(copy);
	module_unref(module);
	module_registry_free(registry);
}

/* Runs a program with this content, owner and time of change at `path`, and removes the file. */
static struct module *run_and_remove(struct module_registry *registry, const char *path, uid_t uid,
				     time_t time)
{
	struct timespec times[2] = { { time, 0 }, { time, 0 } };
	struct module *module;

	copy_to(full_path, path);
	assert_int_equal(chown(path, uid, 0), 0);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	module = get(registry, path);
	unlink(path);
	return module;
}

/* Asserts that a removed file of this identity opens. */
static void assert_removed_opens(struct module_registry *registry, uint64_t id, const char *path)
{
	int fd, debug_fd;

	assert_int_equal(module_registry_open(registry, id, path, 3, &fd, &debug_fd), 0);
	close(fd);
	closep(&debug_fd);
}

/* A build-id is what its owner says: what nobody runs is not what root runs, and the reverse. */
static void a_file_is_its_owners(void **state)
{
	char path[] = "/tmp/test_module.XXXXXX";
	struct module_registry *registry = module_registry_new(1 << 20);
	struct module *modules[3];
	uint64_t id;

	if (geteuid()) {
		module_registry_free(registry);
		print_message("not run: files of other users, without root\n");
		skip();
	}
	close(mkstemp(path));
	modules[0] = run_and_remove(registry, path, 65534, 1);
	modules[1] = run_and_remove(registry, path, 0, 1);
	id = module_file_id(modules[1]);
	assert_true(id != module_file_id(modules[0]));
	/* Whichever build-id a user finds, no file of his has the identity of a file of root. */
	assert_int_equal(module_file_id(modules[0]) >> 63, 1);
	assert_int_equal(id >> 63, 0);
	assert_removed_opens(registry, module_file_id(modules[0]), path);
	assert_removed_opens(registry, id, path);
	modules[2] = run_and_remove(registry, path, 0, 2); /* two of them, with different content */
	assert_opens(registry, id, path, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(modules); i++)
		module_unref(modules[i]);
	module_registry_free(registry);
}

static void a_debug_file_is_of_root_or_of_the_owner(void **state)
{
	struct elf_source source = { .fd = open(stripped_path, O_RDONLY | O_CLOEXEC) };
	char path[] = "/tmp/test_module.XXXXXX";
	struct elf_file elf;
	struct module_debug debug = { .path = stripped_path, .elf = &elf };
	int fd;

	if (geteuid()) {
		close(source.fd);
		print_message("not run: files of other users, without root\n");
		skip();
	}
	assert_int_equal(elf_file_read(&source, &elf), 0);
	close(source.fd);
	copy_file(full_path, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	unlink(path);
	assert_true(module_is_debug_of(&debug, fd));
	debug.owner = 65534;
	assert_true(module_is_debug_of(&debug, fd));
	assert_int_equal(fchown(fd, 65534, 0), 0);
	assert_true(module_is_debug_of(&debug, fd));
	debug.owner = 0;
	assert_false(module_is_debug_of(&debug, fd));
	close(fd);
	elf_file_fini(&elf);
}

static void names_the_vdso(void **state)
{
	struct module_registry *registry = module_registry_new(1 << 20);
	struct module *module, *again;
	struct symtab *symbols;
	bool is_found = false;

	if (!getauxval(AT_SYSINFO_EHDR)) {
		module_registry_free(registry);
		print_message("this machine has no vdso\n");
		skip();
	}
	assert_int_equal(module_get_vdso(registry, &module), 0);
	assert_int_equal(module_get_vdso(registry, &again), 0);
	assert_ptr_equal(module, again);
	assert_string_equal(module_path(module), "[vdso]");
	symbols = module_get_symbols(module);
	assert_non_null(symbols);
	for (uint64_t offset = 0; offset < module_vdso_size(); offset += 4) {
		const char *name = name_at(symbols, module_address(module, offset));

		is_found |= name && strstr(name, "clock_gettime");
	}
	assert_true(is_found);
	module_registry_put_symbols(registry, symbols);
	module_unref(module);
	module_unref(again);
	module_registry_free(registry);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_nm_on_every_byte),
		cmocka_unit_test(inner_before_outer),
		cmocka_unit_test(sizeless_reach_to_the_next_or_the_section_end),
		cmocka_unit_test(stripped_names_only_what_it_knows),
		cmocka_unit_test(reads_build_id_and_segments),
		cmocka_unit_test(survives_damage),
		cmocka_unit_test(survives_cutting),
		cmocka_unit_test(a_program_may_come_again),
		cmocka_unit_test(not_all_programs_are_kept),
		cmocka_unit_test(equal_files_share_one_table),
		cmocka_unit_test(evicts_the_oldest_and_reads_it_again),
		cmocka_unit_test(drops_what_is_idle_and_reads_it_again),
		cmocka_unit_test(a_table_over_the_limit_is_refused),
		cmocka_unit_test(settles_when_nobody_lives),
		cmocka_unit_test(a_file_written_over_has_no_names),
		cmocka_unit_test(opens_only_regular_files),
		cmocka_unit_test(a_copy_does_not_answer_for_the_file),
		cmocka_unit_test(a_file_is_its_owners),
		cmocka_unit_test(a_debug_file_is_of_root_or_of_the_owner),
		cmocka_unit_test(names_the_vdso),
	};

	if (argc != 4) {
		fprintf(stderr, "usage: test_module LIBRARY STRIPPED NM_OUTPUT\n");
		return 1;
	}
	full_path = argv[1];
	stripped_path = argv[2];
	nm_path = argv[3];
	return cmocka_run_group_tests(tests, nm_read, NULL);
}

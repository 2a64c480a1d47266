/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arguments: the fixture library; the same without .symtab; with its symbols packed inside; with 64
 * MiB of zeros packed inside; without a build-id but with a debug link; and the file that this link
 * names.
 */
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
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/elf/debug_file.h"
#include "daemon/symbol/symtab.h"

static const char *full_path, *stripped_path, *packed_path, *bomb_path, *linked_path, *debug_path;

static struct symtab *load(const char *path, int debug_fd)
{
	struct symtab_aids aids = { .debug_fd = debug_fd };
	struct elf_source source = { .fd = open(path, O_RDONLY | O_CLOEXEC) };
	struct symtab *symtab;

	assert_true(source.fd >= 0);
	assert_int_equal(symtab_load(&source, &aids, &symtab), 0);
	close(source.fd);
	return symtab;
}

/* Finds the addresses of a function in the full file: [*start_out, *end_out). */
static void function_at(const char *wanted, uint64_t *start_out, uint64_t *end_out)
{
	struct symtab *symtab = load(full_path, -1);
	uint64_t start, end = 0;
	const char *name;

	for (uint64_t address = 0; address < 0x10000; address++) {
		if (!symtab_lookup(symtab, address, &name, &start) || !name || strcmp(name, wanted))
			continue;
		*start_out = start;
		end = address + 1;
	}
	assert_true(end != 0);
	*end_out = end;
	symtab_free(symtab);
}

static void assert_name(struct symtab *symtab, uint64_t address, const char *expected)
{
	const char *name;
	uint64_t start;

	assert_true(symtab_lookup(symtab, address, &name, &start));
	assert_string_equal(name, expected);
}

/* True if the function is named that only the .symtab of the full file lists. */
static void assert_hidden_is(const char *path, int debug_fd, const char *expected)
{
	struct symtab *symtab = load(path, debug_fd);
	uint64_t start, end;

	function_at("fixture_hidden", &start, &end);
	assert_name(symtab, start, expected);
	assert_name(symtab, end - 1, expected);
	symtab_free(symtab);
}

static void what_has_no_name_is_told_by_its_start(void **state)
{
	struct symtab *symtab = load(stripped_path, -1);
	uint64_t start, end, found;
	const char *name = "";

	function_at("fixture_hidden", &start, &end);
	assert_true(symtab_lookup(symtab, start + 1, &name, &found) && found == start);
	assert_null(name);
	assert_true(symtab_lookup(symtab, end - 1, &name, &found) && found == start);
	function_at("fixture_call", &start, &end);
	assert_name(symtab, start, "fixture_call");
	/* An assembler function without any size: it has no name. */
	function_at("fixture_bare", &start, &end);
	assert_false(symtab_lookup(symtab, start + 8, &name, &found));
	symtab_free(symtab);
}

static void reads_what_is_packed_inside(void **state)
{
	assert_hidden_is(packed_path, -1, "fixture_hidden");
}

static void unpacks_no_more_than_is_sane(void **state)
{
	struct elf_source source = { .fd = open(bomb_path, O_RDONLY | O_CLOEXEC) };
	struct symtab *symtab = load(bomb_path, -1);
	uint64_t start, end;
	void *image = NULL;
	size_t size;

	assert_int_equal(debugdata_unpack(&source, &image, &size), -E2BIG);
	assert_null(image);
	close(source.fd);
	function_at("fixture_call", &start, &end);
	assert_name(symtab, start, "fixture_call");
	symtab_free(symtab);
}

/* A root directory, as a container has one, with one file in it. */
struct root {
	char path[64];
	int fd;
	char file[2 * PATH_MAX];
};

static void make_dirs(char *path)
{
	for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
		*at = '/';
	}
}

static void root_make(struct root *root, const char *file)
{
	strcpy(root->path, "/tmp/test_elf_debug.XXXXXX");
	assert_non_null(mkdtemp(root->path));
	root->fd = open(root->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(root->fd >= 0);
	snprintf(root->file, sizeof(root->file), "%s%s", root->path, file);
	make_dirs(root->file);
}

static void root_remove(struct root *root)
{
	unlink(root->file);
	for (char *at = strrchr(root->file, '/'); at; at = strrchr(root->file, '/')) {
		*at = '\0';
		if (rmdir(root->file) || !strcmp(root->file, root->path))
			break;
	}
	close(root->fd);
}

static void copy_to(const char *from, const char *to, size_t changed_at)
{
	_cleanup_(freep) char *bytes = NULL;
	_cleanup_(fclosep) FILE *in = fopen(from, "re"), *out = fopen(to, "we");
	struct stat st;

	assert_true(in && out && !fstat(fileno(in), &st));
	bytes = malloc((size_t)st.st_size);
	assert_int_equal(fread(bytes, 1, (size_t)st.st_size, in), st.st_size);
	if (changed_at)
		bytes[(size_t)st.st_size - changed_at] ^= 1;
	assert_int_equal(fwrite(bytes, 1, (size_t)st.st_size, out), st.st_size);
}

static void file_read(const char *path, struct elf_file *out)
{
	struct elf_source source = { .fd = open(path, O_RDONLY | O_CLOEXEC) };

	assert_int_equal(elf_file_read(&source, out), 0);
	close(source.fd);
}

static bool is_right(const void *file, int fd)
{
	return debug_file_is_of(fd, file);
}

static int debug_open(struct root *root, const char *path, const struct elf_file *file)
{
	struct mount_view view = mount_view_of(NULL, -1);
	const struct debug_file_choice choice = { is_right, file };

	return debug_file_open(&view, root->fd, path, file, &choice);
}

static void follows_a_link_with_its_checksum(void **state)
{
	static const char *const places[] = { "/app/fixture_symbols.debug",
					      "/app/.debug/fixture_symbols.debug",
					      "/usr/lib/debug/app/fixture_symbols.debug" };
	struct elf_file file, unlinked;
	struct root root;
	int fd;

	file_read(linked_path, &file);
	file_read(stripped_path, &unlinked);
	assert_string_equal(file.debug_name, "fixture_symbols.debug");
	assert_int_equal(file.build_id_size, 0);
	assert_false(file.has_symtab);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		root_make(&root, places[i]);
		copy_to(debug_path, root.file, 0);
		fd = debug_open(&root, "/app/x.so", &file);
		assert_true(fd >= 0);
		assert_true(debug_file_is_of(fd, &file));
		assert_false(debug_file_is_of(fd, &unlinked));
		assert_hidden_is(linked_path, fd, "fixture_hidden");
		close(fd);
		copy_to(debug_path, root.file, 100); /* the debug file of another build */
		assert_int_equal(debug_open(&root, "/app/x.so", &file), -ENOENT);
		root_remove(&root);
	}
	elf_file_fini(&file);
	elf_file_fini(&unlinked);
}

static void id_path(const struct elf_file *file, char *path)
{
	path += sprintf(path, "/usr/lib/debug/.build-id/%02x/", file->build_id[0]);
	for (size_t i = 1; i < file->build_id_size; i++)
		path += sprintf(path, "%02x", file->build_id[i]);
	strcpy(path, ".debug");
}

static void finds_its_build_id_in_the_root(void **state)
{
	struct elf_file file, other;
	struct root root;
	char path[256];
	int fd;

	file_read(stripped_path, &file);
	file_read(linked_path, &other);
	id_path(&file, path);
	root_make(&root, path);
	assert_int_equal(debug_open(&root, "/x.so", &file), -ENOENT);
	copy_to(full_path, root.file, 0);
	fd = debug_open(&root, "/x.so", &file);
	assert_true(fd >= 0 && debug_file_is_of(fd, &file));
	assert_false(debug_file_is_of(fd, &other));
	assert_hidden_is(stripped_path, fd, "fixture_hidden");
	close(fd);
	copy_to(linked_path, root.file, 0);
	assert_int_equal(debug_open(&root, "/x.so", &file), -ENOENT);
	root_remove(&root);
	elf_file_fini(&file);
	elf_file_fini(&other);
}

/* A file of another build in one place does not hide the right one in a later place. */
static void goes_on_after_a_wrong_file(void **state)
{
	static const char *const links[] = { "/app/fixture_symbols.debug",
					     "/app/.debug/fixture_symbols.debug",
					     "/usr/lib/debug/app/fixture_symbols.debug" };
	struct elf_file file;
	char at[2 * PATH_MAX];
	struct root root;
	int fd;

	file_read(linked_path, &file);
	file.build_id_size = 20; /* all 0; what lies under it is of another build, too */
	id_path(&file, at);
	root_make(&root, at);
	copy_to(debug_path, root.file, 100);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		snprintf(at, sizeof(at), "%s%s", root.path, links[i]);
		make_dirs(at);
		copy_to(debug_path, at, i + 1 < ARRAY_SIZE(links) ? 100 : 0);
	}
	fd = debug_open(&root, "/app/x.so", &file);
	assert_true(fd >= 0);
	close(fd);
	close(root.fd);
	elf_file_fini(&file);
	snprintf(at, sizeof(at), "rm -r %s", root.path);
	assert_int_equal(system(at), 0);
}

static void opens_nothing_but_files_inside(void **state)
{
	struct elf_file file;
	struct root root;
	char path[256];

	file_read(stripped_path, &file);
	id_path(&file, path);
	root_make(&root, path);
	assert_int_equal(symlink(full_path, root.file), 0); /* a path that leads out of the root */
	assert_int_equal(debug_open(&root, "/x.so", &file), -ENOENT);
	unlink(root.file);
	assert_int_equal(mkfifo(root.file, 0600), 0);
	assert_int_equal(debug_open(&root, "/x.so", &file), -ENOENT);
	unlink(root.file);
	assert_int_equal(mkdir(root.file, 0700), 0);
	assert_int_equal(debug_open(&root, "/x.so", &file), -ENOENT);
	rmdir(root.file);
	root_remove(&root);
	elf_file_fini(&file);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_no_name_is_told_by_its_start),
		cmocka_unit_test(reads_what_is_packed_inside),
		cmocka_unit_test(unpacks_no_more_than_is_sane),
		cmocka_unit_test(follows_a_link_with_its_checksum),
		cmocka_unit_test(finds_its_build_id_in_the_root),
		cmocka_unit_test(goes_on_after_a_wrong_file),
		cmocka_unit_test(opens_nothing_but_files_inside),
	};

	if (argc != 7)
		return 2;
	full_path = argv[1];
	stripped_path = argv[2];
	packed_path = argv[3];
	bomb_path = argv[4];
	linked_path = argv[5];
	debug_path = argv[6];
	return cmocka_run_group_tests(tests, NULL, NULL);
}

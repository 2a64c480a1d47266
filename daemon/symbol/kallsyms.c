/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/kallsyms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/array.h"
#include "common/base.h"
#include "common/search.h"
#include "daemon/base/hash.h"
#include "daemon/symbol/alias_rank.h"
#include "daemon/symbol/kallsyms_line.h"

/*
 * /proc/kallsyms gives no sizes of functions. A function is assumed to end where the next one
 * begins, but to have at most this number of bytes.
 */
#define FUNCTION_BYTES_MAX (64 * 1024)
#define SYMBOLS_MAX	   2000000 /* maximum number of symbols; a kernel has about 150,000 */
#define KALLSYMS_BUFFER	   (256 * 1024)
/* the entry has no name and only marks the end of the entry before it */
#define NAMELESS    UINT32_MAX
#define MODULES_MAX UINT16_MAX

struct kernel_module {
	char *name;
	uint64_t base; /* address to which the offsets in this module are relative */
	uint64_t file_id;
};

/*
 * The functions of the kernel, sorted by start address. Each property has an array of its own,
 * which takes half the memory of an array of structs, and a search reads less of it.
 */
struct kallsyms {
	uint64_t *starts;
	uint32_t *names; /* offsets of the functions' names in `text`, or NAMELESS */
	uint16_t *modules;
	size_t n;
	struct kernel_module *module_list; /* the kernel itself ("kernel") and its modules */
	size_t n_modules;
	char *text;
	size_t text_size;
};

struct entry {
	uint64_t start;
	uint32_t name;
	uint16_t module;
	bool is_global;
};

/* What has been read from /proc/kallsyms so far. */
struct reader {
	struct entry *entries;
	size_t n, entries_capacity;
	char *text;
	size_t text_size, text_capacity;
	struct kernel_module *modules;
	size_t n_modules, modules_capacity;
	uint64_t core_start, core_end;
	uint64_t any_address; /* bitwise or of all addresses that were read; 0 if the kernel
				 hides them */
	size_t lines;
};

static void reader_fini(struct reader *reader)
{
	for (size_t i = 0; i < reader->n_modules; i++)
		free(reader->modules[i].name);
	free(reader->modules);
	free(reader->entries);
	free(reader->text);
}

/*
 * Returns a hash that identifies a kernel module in recorded data. The hash includes the build of
 * the kernel, because the same offset in another build is different code.
 */
static uint64_t module_identity(const char *name)
{
	struct utsname kernel;
	uint64_t id = hash64_string(HASH64_SEED, name);

	if (uname(&kernel) < 0)
		return id;
	id = hash64_string(id, kernel.release);
	return hash64_string(id, kernel.version);
}

/*
 * Finds the index of the module; adds the module if it is new. Searches from the last module
 * backwards, because /proc/kallsyms lists the functions of a module together.
 */
static int module_find(struct reader *reader, const char *name, uint16_t *index_out)
{
	char *copy;

	for (size_t i = reader->n_modules; i-- > 0;) {
		if (!strcmp(reader->modules[i].name, name)) {
			*index_out = (uint16_t)i;
			return 0;
		}
	}
	if (reader->n_modules == MODULES_MAX)
		return -E2BIG;
	if (array_reserve(reader->modules, reader->modules_capacity, reader->n_modules + 1))
		return -ENOMEM;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	reader->modules[reader->n_modules] = (struct kernel_module){
		.name = copy,
		.base = UINT64_MAX,
		.file_id = module_identity(name),
	};
	*index_out = (uint16_t)reader->n_modules++;
	return 0;
}

static int text_add(struct reader *reader, const char *name, uint32_t *offset_out)
{
	size_t n = strlen(name) + 1;

	if (array_reserve(reader->text, reader->text_capacity, reader->text_size + n))
		return -ENOMEM;
	memcpy(reader->text + reader->text_size, name, n);
	*offset_out = (uint32_t)reader->text_size;
	reader->text_size += n;
	return 0;
}

/*
 * True if the symbol is not a function but marks the start or the end of a section, such as
 * __sched_text_end.
 */
static bool is_marker(const char *name)
{
	size_t n = strlen(name);

	if (name[0] != '_')
		return false;
	if (!strcmp(name, "_text") || !strcmp(name, "_stext") || !strcmp(name, "_etext") ||
	    !strcmp(name, "_sinittext") || !strcmp(name, "_einittext"))
		return true;
	return strstr(name, "text_") && ((n > 6 && !strcmp(name + n - 6, "_start")) ||
					 (n > 4 && !strcmp(name + n - 4, "_end")));
}

static int entry_add(struct reader *reader, uint64_t start, char type, const char *name,
		     uint16_t module)
{
	struct entry entry = {
		.start = start,
		.name = NAMELESS,
		.module = module,
		.is_global = type != 't',
	};
	int r;

	if (reader->n == SYMBOLS_MAX)
		return -E2BIG;
	if (array_reserve(reader->entries, reader->entries_capacity, reader->n + 1))
		return -ENOMEM;
	if (!is_marker(name)) {
		r = text_add(reader, name, &entry.name);
		if (r < 0)
			return r;
	}
	reader->entries[reader->n++] = entry;
	return 0;
}

static int line_read(struct reader *reader, char *text)
{
	struct kallsyms_line line;
	uint16_t index;
	int r;

	r = kallsyms_line_parse(text, &line);
	if (r < 0)
		return r;
	reader->lines++;
	reader->any_address |= line.address;
	if (!strchr("tTwW", line.type))
		return 0;
	if (!line.module && !strcmp(line.name, "_stext"))
		reader->core_start = line.address;
	if (!line.module && !strcmp(line.name, "_etext"))
		reader->core_end = line.address;
	/*
	 * Skip __pfx_ and __cfi_ symbols: they name the padding that some kernels have before each
	 * function.
	 */
	if (!strncmp(line.name, "__pfx_", 6) || !strncmp(line.name, "__cfi_", 6))
		return 0;
	r = module_find(reader, line.module ? line.module : "kernel", &index);
	if (r < 0)
		return r;
	return entry_add(reader, line.address, line.type, line.name, index);
}

static int entry_compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts the entries by address, unless they are sorted: /proc/kallsyms lists some modules out of
 * order. */
static void entries_sort(struct reader *reader)
{
	for (size_t i = 1; i < reader->n; i++) {
		if (reader->entries[i].start < reader->entries[i - 1].start) {
			qsort(reader->entries, reader->n, sizeof(struct entry), entry_compare);
			return;
		}
	}
}

static bool is_better(const struct reader *reader, const struct entry *a, const struct entry *b)
{
	if (a->name == NAMELESS || b->name == NAMELESS)
		return b->name == NAMELESS && a->name != NAMELESS;
	return alias_rank_compare(reader->text + a->name, a->is_global, reader->text + b->name,
				  b->is_global) < 0;
}

/*
 * Keeps only the best name of each address. Drops functions outside the main code of the kernel,
 * for example those whose memory is freed after boot.
 */
static void entries_reduce(struct reader *reader)
{
	size_t n = 0;

	for (size_t i = 0; i < reader->n; i++) {
		struct entry *entry = &reader->entries[i];
		bool is_core = !strcmp(reader->modules[entry->module].name, "kernel");

		if (is_core && reader->core_end &&
		    (entry->start < reader->core_start || entry->start > reader->core_end))
			continue;
		if (!n || reader->entries[n - 1].start != entry->start)
			reader->entries[n++] = *entry;
		else if (is_better(reader, entry, &reader->entries[n - 1]))
			reader->entries[n - 1] = *entry;
	}
	reader->n = n;
}

static void module_bases(struct reader *reader)
{
	for (size_t i = 0; i < reader->n; i++) {
		struct kernel_module *module = &reader->modules[reader->entries[i].module];

		if (reader->entries[i].start < module->base)
			module->base = reader->entries[i].start;
	}
	for (size_t i = 0; i < reader->n_modules; i++) {
		if (!strcmp(reader->modules[i].name, "kernel") && reader->core_start)
			reader->modules[i].base = reader->core_start;
	}
}

/* Copies the entries and names that were read to a new table. */
static int symbols_build(struct reader *reader, struct kallsyms **out)
{
	_cleanup_(kallsyms_freep) struct kallsyms *symbols = calloc(1, sizeof(*symbols));
	size_t text_size = 0;

	if (!symbols)
		return -ENOMEM;
	symbols->starts = reallocarray(NULL, reader->n, sizeof(*symbols->starts));
	symbols->names = reallocarray(NULL, reader->n, sizeof(*symbols->names));
	symbols->modules = reallocarray(NULL, reader->n, sizeof(*symbols->modules));
	symbols->text = malloc(reader->text_size + 1);
	if (!symbols->starts || !symbols->names || !symbols->modules || !symbols->text)
		return -ENOMEM;
	for (size_t i = 0; i < reader->n; i++) {
		const struct entry *entry = &reader->entries[i];

		symbols->starts[i] = entry->start;
		symbols->modules[i] = entry->module;
		symbols->names[i] = NAMELESS;
		if (entry->name == NAMELESS)
			continue;
		symbols->names[i] = (uint32_t)text_size;
		strcpy(symbols->text + text_size, reader->text + entry->name);
		text_size += strlen(reader->text + entry->name) + 1;
	}
	symbols->n = reader->n;
	symbols->text_size = text_size;
	symbols->n_modules = reader->n_modules;
	symbols->module_list = TAKE(reader->modules);
	reader->n_modules = 0;
	*out = TAKE(symbols);
	return 0;
}

static int lines_read(struct reader *reader, FILE *in)
{
	_cleanup_(freep) char *line = NULL;
	size_t size = 0;
	int r;

	errno = 0;
	while (getline(&line, &size, in) > 0) {
		r = line_read(reader, line);
		if (r < 0)
			return r;
	}
	if (!feof(in))
		return errno ? -errno : -EIO;
	return 0;
}

int kallsyms_load(const char *path, struct kallsyms **out)
{
	_cleanup_(reader_fini) struct reader reader = { 0 };
	_cleanup_(freep) char *buffer = NULL;
	_cleanup_(fclosep) FILE *in = NULL;
	int r;

	in = fopen(path ? path : KALLSYMS_PATH, "re");
	if (!in)
		return -errno;
	buffer = malloc(KALLSYMS_BUFFER);
	if (!buffer)
		return -ENOMEM;
	setvbuf(in, buffer, _IOFBF, KALLSYMS_BUFFER);
	r = lines_read(&reader, in);
	if (r < 0)
		return r;
	if (!reader.lines)
		return -ENODATA;
	if (!reader.any_address)
		return -EPERM;
	if (!reader.n)
		return -ENODATA;
	entries_sort(&reader);
	entries_reduce(&reader);
	module_bases(&reader);
	return symbols_build(&reader, out);
}

/*
 * Returns the index of the last entry that begins at or before the address; symbols->n if there is
 * none.
 */
static size_t entry_before(const struct kallsyms *symbols, uint64_t address)
{
	size_t n = SEARCH(symbols->n, i, symbols->starts[i] <= address);

	return n ? n - 1 : symbols->n;
}

bool kallsyms_lookup(const struct kallsyms *symbols, uint64_t address, bool is_call,
		     struct symbol *symbol_out)
{
	uint64_t at = is_call && address ? address - 1 : address;
	size_t i = entry_before(symbols, at);
	const struct kernel_module *module;
	const char *name;

	*symbol_out = (struct symbol){ .kind = FRAME_KERNEL, .file_offset = address };
	if (i == symbols->n || symbols->names[i] == NAMELESS ||
	    at - symbols->starts[i] >= FUNCTION_BYTES_MAX)
		return false;
	module = &symbols->module_list[symbols->modules[i]];
	name = symbols->text + symbols->names[i];
	symbol_out->name = name;
	symbol_out->name_offset = address - symbols->starts[i];
	symbol_out->module = module->name;
	symbol_out->file_id = module->file_id;
	symbol_out->file_offset = address - module->base;
	/*
	 * The addresses of BPF programs depend on the order in which they are loaded. So that a
	 * stack has the same id after a reboot, each program is treated as a file of its own, which
	 * the tag in its name identifies.
	 */
	if (!strcmp(module->name, "bpf")) {
		symbol_out->file_id = hash64_string(module->file_id, name);
		symbol_out->file_offset = symbol_out->name_offset;
	}
	return true;
}

void kallsyms_size(const struct kallsyms *symbols, size_t *functions, size_t *bytes)
{
	*functions = symbols->n;
	*bytes = symbols->text_size + sizeof(*symbols) +
		 symbols->n_modules * sizeof(struct kernel_module) +
		 symbols->n * (sizeof(uint64_t) + sizeof(uint32_t) + sizeof(uint16_t));
}

struct kallsyms *kallsyms_free(struct kallsyms *symbols)
{
	if (!symbols)
		return NULL;
	for (size_t i = 0; i < symbols->n_modules; i++)
		free(symbols->module_list[i].name);
	free(symbols->module_list);
	free(symbols->starts);
	free(symbols->names);
	free(symbols->modules);
	free(symbols->text);
	free(symbols);
	return NULL;
}

void kallsyms_freep(struct kallsyms **symbols)
{
	kallsyms_free(*symbols);
}

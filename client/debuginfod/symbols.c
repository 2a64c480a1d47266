/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/debuginfod/symbols.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "common/demangle.h"
#include "common/search.h"

enum {
	SECTIONS_MAX = 65536,
	NOTES_BYTES_MAX = 64 * 1024, /* a larger section of notes is not read */
	SYMBOLS_AT_ONCE = 1024,
};

/* The file that is read. */
struct file {
	int fd;
	uint64_t size;
	Elf64_Shdr *sections;
	size_t n_sections;
	const char **why; /* where to say what is wrong with the file */
};

/* The best symbol for an address so far. */
struct candidate {
	uint64_t start;
	uint32_t name;	   /* position in the section of names */
	unsigned int rank; /* 0: none so far */
};

static int refuse(struct file *file, const char *why)
{
	*file->why = why;
	return -EBADMSG;
}

static void file_fini(struct file *file)
{
	free(file->sections);
}

static int read_at(struct file *file, uint64_t offset, void *buffer, size_t n)
{
	char *at = buffer;

	if (offset > file->size || n > file->size - offset)
		return refuse(file, "is damaged: it ends early");
	while (n > 0) {
		ssize_t got = pread(file->fd, at, n, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return refuse(file, "is damaged: it ends early");
		at += got;
		offset += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

static int header_read(struct file *file, Elf64_Ehdr *header)
{
	int r;

	if (file->size < sizeof(*header))
		return refuse(file, "is not an ELF file");
	r = read_at(file, 0, header, sizeof(*header));
	if (r < 0)
		return r;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return refuse(file, "is not an ELF file");
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
		return refuse(file, "is not of a 64-bit program of this host's kind");
	if (header->e_shentsize != sizeof(*file->sections) || header->e_shoff == 0)
		return refuse(file, "has no sections");
	return 0;
}

static int sections_read(struct file *file)
{
	Elf64_Ehdr header;
	Elf64_Shdr first;
	uint64_t n;
	int r = header_read(file, &header);

	if (r < 0)
		return r;
	r = read_at(file, header.e_shoff, &first, sizeof(first));
	if (r < 0)
		return r;
	/* A number that does not fit into the header is in the first section. */
	n = header.e_shnum ? header.e_shnum : first.sh_size;
	if (n == 0 || n > SECTIONS_MAX)
		return refuse(file, "has too many sections, or none");
	file->sections = calloc(n, sizeof(*file->sections));
	if (!file->sections)
		return -ENOMEM;
	file->n_sections = n;
	return read_at(file, header.e_shoff, file->sections, n * sizeof(*file->sections));
}

/*
 * Finds the build-id in the n bytes of a section of notes. Returns its size, and sets *at_out to
 * where it begins; 0 if there is none.
 */
static size_t build_id_find(const uint8_t *notes, size_t n, size_t align, size_t *at_out)
{
	size_t at = 0;

	while (n - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		uint64_t name_end, data, next;

		memcpy(&note, notes + at, sizeof(note));
		name_end = at + sizeof(note) + note.n_namesz;
		data = (name_end + align - 1) & ~(uint64_t)(align - 1);
		next = (data + note.n_descsz + align - 1) & ~(uint64_t)(align - 1);
		if (data > n || note.n_descsz > n - data)
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    memcmp(notes + at + sizeof(note), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0 &&
		    note.n_descsz <= BUILD_ID_MAX) {
			*at_out = (size_t)data;
			return note.n_descsz;
		}
		if (next > n)
			return 0;
		at = (size_t)next;
	}
	return 0;
}

/* Checks that the file has this build-id: the server may have sent another one. */
static int build_id_check(struct file *file, const uint8_t *build_id, size_t size)
{
	_cleanup_(freep) uint8_t *notes = malloc(NOTES_BYTES_MAX);
	size_t found, at;
	int r;

	if (!notes)
		return -ENOMEM;
	for (size_t i = 0; i < file->n_sections; i++) {
		const Elf64_Shdr *section = &file->sections[i];

		if (section->sh_type != SHT_NOTE || section->sh_size > NOTES_BYTES_MAX)
			continue;
		r = read_at(file, section->sh_offset, notes, section->sh_size);
		if (r < 0)
			return r;
		found = build_id_find(notes, section->sh_size, section->sh_addralign == 8 ? 8 : 4,
				      &at);
		if (found == 0)
			continue;
		if (found == size && memcmp(notes + at, build_id, size) == 0)
			return 0;
		return refuse(file, "has another build-id");
	}
	return refuse(file, "has no build-id");
}

static int symtab_find(struct file *file, const Elf64_Shdr **symtab, const Elf64_Shdr **names)
{
	for (size_t i = 0; i < file->n_sections; i++) {
		const Elf64_Shdr *section = &file->sections[i];

		if (section->sh_type != SHT_SYMTAB)
			continue;
		if (section->sh_entsize != sizeof(Elf64_Sym) ||
		    section->sh_link >= file->n_sections ||
		    file->sections[section->sh_link].sh_type != SHT_STRTAB ||
		    (section->sh_flags | file->sections[section->sh_link].sh_flags) &
			    SHF_COMPRESSED)
			return refuse(file, "is damaged: its symbol table is not valid");
		*symtab = section;
		*names = &file->sections[section->sh_link];
		return 0;
	}
	return refuse(file, "has no symbol table");
}

/* Returns how much a symbol is preferred to others at the same place; 0 for one of no function. */
static unsigned int symbol_rank(const Elf64_Sym *symbol)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF ||
	    symbol->st_size == 0 || symbol->st_value > UINT64_MAX - symbol->st_size)
		return 0;
	switch (ELF64_ST_BIND(symbol->st_info)) {
	case STB_GLOBAL:
		return 3;
	case STB_WEAK:
		return 2;
	default:
		return 1;
	}
}

/* Returns the index of the first query with an address from `address` on. */
static size_t query_from(const struct symbol_query *queries, size_t n, uint64_t address)
{
	return SEARCH(n, i, queries[i].address < address);
}

/* Makes the symbol the candidate for the addresses that it has, unless they have a better one. */
static void symbol_try(const Elf64_Sym *symbol, const struct symbol_query *queries,
		       struct candidate *candidates, size_t n)
{
	unsigned int rank = symbol_rank(symbol);

	if (rank == 0)
		return;
	for (size_t i = query_from(queries, n, symbol->st_value);
	     i < n && queries[i].address - symbol->st_value < symbol->st_size; i++) {
		struct candidate *best = &candidates[i];

		/* Functions may overlap: the one that begins last is the innermost. */
		if (best->rank > 0 && (best->start > symbol->st_value ||
				       (best->start == symbol->st_value && best->rank >= rank)))
			continue;
		*best = (struct candidate){
			.start = symbol->st_value,
			.name = symbol->st_name,
			.rank = rank,
		};
	}
}

static int symtab_scan(struct file *file, const Elf64_Shdr *symtab,
		       const struct symbol_query *queries, struct candidate *candidates, size_t n)
{
	_cleanup_(freep) Elf64_Sym *symbols = calloc(SYMBOLS_AT_ONCE, sizeof(*symbols));
	uint64_t left = symtab->sh_size / sizeof(*symbols), offset = symtab->sh_offset;
	int r;

	if (!symbols)
		return -ENOMEM;
	while (left > 0) {
		size_t some = left < SYMBOLS_AT_ONCE ? left : SYMBOLS_AT_ONCE;

		r = read_at(file, offset, symbols, some * sizeof(*symbols));
		if (r < 0)
			return r;
		for (size_t i = 0; i < some; i++)
			symbol_try(&symbols[i], queries, candidates, n);
		offset += some * sizeof(*symbols);
		left -= some;
	}
	return 0;
}

/* Reads the name of a symbol. Sets *out to NULL if it has none, or too long a one. */
static int name_read(struct file *file, const Elf64_Shdr *names, uint32_t position, char **out)
{
	char raw[FUNCTION_NAME_MAX + 1] = "", readable[DEMANGLE_OUTPUT_MAX];
	const char *name;
	size_t n;
	int r;

	*out = NULL;
	if (position >= names->sh_size)
		return 0;
	n = names->sh_size - position < FUNCTION_NAME_MAX ? names->sh_size - position
							  : FUNCTION_NAME_MAX;
	if (names->sh_offset > UINT64_MAX - position)
		return refuse(file, "is damaged: it ends early");
	r = read_at(file, names->sh_offset + position, raw, n);
	if (r < 0 || memchr(raw, '\0', n) == NULL)
		return r;
	raw[strcspn(raw, "@")] = '\0'; /* a version follows, as in memcpy@@GLIBC_2.14 */
	name = demangle(raw, readable, sizeof(readable));
	if (name[0] == '\0' || strlen(name) > FUNCTION_NAME_MAX)
		return 0;
	*out = strdup(name);
	return *out ? 0 : -ENOMEM;
}

static int functions_find(struct file *file, struct symbol_query *queries, size_t n)
{
	_cleanup_(freep) struct candidate *candidates = calloc(n + 1, sizeof(*candidates));
	const Elf64_Shdr *symtab, *names;
	int r = candidates ? symtab_find(file, &symtab, &names) : -ENOMEM;

	if (r < 0)
		return r;
	r = symtab_scan(file, symtab, queries, candidates, n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (candidates[i].rank == 0)
			continue;
		queries[i].start = candidates[i].start;
		r = name_read(file, names, candidates[i].name, &queries[i].name);
		if (r < 0)
			return r;
	}
	return 0;
}

int symbols_find(int fd, const uint8_t *build_id, size_t build_id_size,
		 struct symbol_query *queries, size_t n, const char **why_out)
{
	_cleanup_(file_fini) struct file file = { .fd = fd, .why = why_out };
	struct stat st;
	int r;

	*why_out = NULL;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return refuse(&file, "is not a regular file");
	file.size = (uint64_t)st.st_size;
	r = sections_read(&file);
	if (r < 0)
		return r;
	r = build_id_check(&file, build_id, build_id_size);
	if (r < 0)
		return r;
	return functions_find(&file, queries, n);
}

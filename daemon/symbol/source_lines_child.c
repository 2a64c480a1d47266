/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/source_lines_child.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dwarf.h>
#include <elfutils/libdw.h>

#include "common/base.h"
#include "daemon/host/capabilities.h"
#include "daemon/symbol/demangle.h"

/* Addresses of one unit; sorted. */
struct symtab_range {
	Dwarf_Addr start, end;
	Dwarf_Off unit;
};

struct image {
	Dwarf *dwarf;
	struct symtab_range *ranges;
	size_t n, room;
};

static int range_add(struct image *image, Dwarf_Addr start, Dwarf_Addr end, Dwarf_Off unit)
{
	size_t room = image->room ? 2 * image->room : 256;
	struct symtab_range *ranges = image->ranges;

	if (image->n == image->room) {
		ranges = reallocarray(ranges, room, sizeof(*ranges));
		if (!ranges)
			return -ENOMEM;
		image->ranges = ranges;
		image->room = room;
	}
	ranges[image->n++] = (struct symtab_range){ start, end, unit };
	return 0;
}

static int compare_ranges(const void *x, const void *y)
{
	const struct symtab_range *a = x, *b = y;

	return a->start < b->start ? -1 : a->start > b->start;
}

static int unit_read(struct image *image, Dwarf_Off at)
{
	Dwarf_Addr base = 0, start, end;
	ptrdiff_t next = 0;
	Dwarf_Die die;
	int r = 0;

	if (!dwarf_offdie(image->dwarf, at, &die))
		return 0;
	while (!r && (next = dwarf_ranges(&die, next, &base, &start, &end)) > 0)
		r = end > start ? range_add(image, start, end, at) : 0;
	return r;
}

/* Not from .debug_aranges: what clang and rustc build has none. */
static int units_read(struct image *image)
{
	Dwarf_Off at = 0, next;
	size_t header;
	int r = 0;

	while (!r && dwarf_nextcu(image->dwarf, at, &next, &header, NULL, NULL, NULL) == 0) {
		r = unit_read(image, at + header);
		at = next;
	}
	qsort(image->ranges, image->n, sizeof(*image->ranges), compare_ranges);
	return r;
}

static bool image_open(struct image *image, int fd)
{
	*image = (struct image){ .dwarf = dwarf_begin(fd, DWARF_C_READ) };
	if (!image->dwarf)
		return false;
	return units_read(image) == 0 && image->n > 0;
}

static void image_close(struct image *image)
{
	dwarf_end(image->dwarf);
	free(image->ranges);
	*image = (struct image){ 0 };
}

static bool unit_find(const struct image *image, Dwarf_Addr at, Dwarf_Die *out)
{
	size_t low = 0, n = image->n, half;

	while (n > 1) {
		half = n / 2;
		if (image->ranges[low + half].start <= at)
			low += half;
		n -= half;
	}
	if (!n || at < image->ranges[low].start || at >= image->ranges[low].end)
		return false;
	return dwarf_offdie(image->dwarf, image->ranges[low].unit, out) != NULL;
}

struct place {
	const char *file;
	uint32_t line;
};

static struct place line_of(Dwarf_Die *unit, Dwarf_Addr at)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, at);
	struct place place = { 0 };
	int number = 0;

	if (!line)
		return place;
	place.file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		place.line = (uint32_t)number;
	return place;
}

static uint32_t number_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) ||
	    value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

/* Where an inlined function was called. */
static struct place call_of(Dwarf_Die *die, Dwarf_Die *unit)
{
	struct place place = { .line = number_of(die, DW_AT_call_line) };
	uint32_t file = number_of(die, DW_AT_call_file);
	Dwarf_Files *files;
	size_t n;

	if (dwarf_getsrcfiles(unit, &files, &n) == 0 && file < n)
		place.file = dwarf_filesrc(files, file, NULL, NULL);
	return place;
}

static const char *name_of(Dwarf_Die *die, char *buffer)
{
	static const unsigned int linkage[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name };
	Dwarf_Attribute attribute;
	const char *name;

	for (size_t i = 0; i < ARRAY_SIZE(linkage); i++) {
		if (!dwarf_attr_integrate(die, linkage[i], &attribute))
			continue;
		name = dwarf_formstring(&attribute);
		if (name)
			return demangle(name, buffer, DEMANGLE_OUTPUT_MAX);
	}
	return dwarf_diename(die);
}

static size_t text_size(const char *text)
{
	return text ? strnlen(text, LINES_CHILD_TEXT_MAX) : 0;
}

static int frame_write(FILE *out, const char *name, const struct place *place)
{
	const struct lines_child_frame frame = {
		.line = place->line,
		.name_size = (uint16_t)text_size(name),
		.file_size = (uint16_t)text_size(place->file),
	};

	fwrite(&frame, sizeof(frame), 1, out);
	fwrite(name ? name : "", 1, frame.name_size, out);
	fwrite(place->file ? place->file : "", 1, frame.file_size, out);
	return ferror(out) ? -EIO : 0;
}

/* The scopes from the innermost out to the function whose code it is, those inlined. */
static int scopes_write(FILE *out, Dwarf_Die *scopes, int n, Dwarf_Die *unit, struct place place)
{
	_cleanup_(freep) char *buffer = malloc(DEMANGLE_OUTPUT_MAX);
	struct lines_child_place head = { .frames = 1 };
	int i, end, r = 0;

	if (!buffer)
		return -ENOMEM;
	for (end = 0; end < n && dwarf_tag(&scopes[end]) != DW_TAG_subprogram; end++)
		if (dwarf_tag(&scopes[end]) == DW_TAG_inlined_subroutine &&
		    head.frames < LINES_CHILD_DEPTH_MAX)
			head.frames++;
	fwrite(&head, sizeof(head), 1, out);
	for (i = 0; i < end && !r; i++) {
		if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine)
			continue;
		if (--head.frames > 0)
			r = frame_write(out, name_of(&scopes[i], buffer), &place);
		else
			head.frames = 1; /* more than are told: left out */
		place = call_of(&scopes[i], unit);
	}
	return r ? r : frame_write(out, NULL, &place);
}

/* The innermost scope with its parents as they are in the code, not as they are declared. */
static int nest_of(Dwarf_Die *unit, Dwarf_Addr at, Dwarf_Die **out)
{
	_cleanup_(freep) Dwarf_Die *scopes = NULL;
	Dwarf_Die innermost;

	if (dwarf_getscopes(unit, at, &scopes) <= 0)
		return 0;
	innermost = scopes[0];
	return dwarf_getscopes_die(&innermost, out);
}

static int place_write(FILE *out, const struct image *image, Dwarf_Addr at)
{
	static const struct lines_child_place none;
	_cleanup_(freep) Dwarf_Die *nest = NULL;
	struct place place;
	Dwarf_Die unit;
	int n;

	if (!image || !unit_find(image, at, &unit))
		return fwrite(&none, sizeof(none), 1, out) == 1 ? 0 : -EIO;
	place = line_of(&unit, at);
	if (!place.file)
		return fwrite(&none, sizeof(none), 1, out) == 1 ? 0 : -EIO;
	n = nest_of(&unit, at, &nest);
	return scopes_write(out, nest, n > 0 ? n : 0, &unit, place);
}

/* In the file itself, or in its separate debug file. */
static int file_write(FILE *out, const struct lines_child_file *file, unsigned int number,
		      const uint64_t *addresses)
{
	int fd = LINES_CHILD_FIRST_FD + 2 * (int)number, r = 0;
	struct image image = { 0 };
	uint32_t has_lines;

	has_lines = file->has_file && image_open(&image, fd);
	if (!has_lines && file->has_debug) {
		image_close(&image);
		has_lines = image_open(&image, fd + 1);
	}
	fwrite(&has_lines, sizeof(has_lines), 1, out);
	for (uint32_t i = 0; i < file->n && !r; i++)
		r = place_write(out, has_lines ? &image : NULL, addresses[i]);
	image_close(&image);
	return r;
}

struct request {
	const struct lines_child_head *head;
	const struct lines_child_file *files;
	const uint64_t *addresses;
};

/* Made by the daemon: what does not fit together is its mistake. */
static int request_map(struct request *out)
{
	const struct lines_child_head *head;
	size_t size, at = sizeof(*head), n = 0;
	struct stat st;
	char *memory;

	if (fstat(LINES_CHILD_REQUEST_FD, &st) < 0)
		return -errno;
	size = (size_t)st.st_size;
	memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, LINES_CHILD_REQUEST_FD, 0);
	if (memory == MAP_FAILED)
		return -errno;
	head = (const void *)memory;
	if (size < at || head->n_files > LINES_CHILD_FILES_MAX)
		return -EINVAL;
	out->head = head;
	out->files = (const void *)(memory + at);
	at += head->n_files * sizeof(*out->files);
	for (uint32_t i = 0; i < head->n_files && size >= at; i++)
		n += out->files[i].n;
	out->addresses = (const void *)(memory + at);
	return size == at + n * sizeof(uint64_t) ? 0 : -EINVAL;
}

static int limit_set(int which, rlim_t value)
{
	const struct rlimit limit = { value, value };

	return setrlimit(which, &limit) < 0 ? -errno : 0;
}

/* Nothing it could do with what it reads but write an answer. */
static int process_limit(const struct lines_child_head *head)
{
	int r = capabilities_limit(0);

	prctl(PR_SET_NAME, LINES_CHILD_NAME);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!r)
		r = limit_set(RLIMIT_CORE, 0);
	if (!r)
		r = limit_set(RLIMIT_CPU, head->cpu_seconds);
	if (!r)
		r = limit_set(RLIMIT_FSIZE, head->reply_bytes);
#ifndef __SANITIZE_ADDRESS__ /* which maps terabytes for itself */
	if (!r)
		r = limit_set(RLIMIT_AS, head->memory_bytes);
#endif
	return r;
}

int lines_child_main(void)
{
	struct request request = { 0 };
	size_t at = 0;
	FILE *out;
	int r;

	r = request_map(&request);
	if (!r)
		r = process_limit(request.head);
	if (r)
		return EXIT_FAILURE;
	out = fdopen(LINES_CHILD_REPLY_FD, "w");
	if (!out)
		return EXIT_FAILURE;
	for (unsigned int i = 0; i < request.head->n_files && !r; i++) {
		r = file_write(out, &request.files[i], i, request.addresses + at);
		at += request.files[i].n;
		/* What is whole stays so when the next one is what it ends for. */
		if (!r && fflush(out) == EOF)
			r = -EIO;
	}
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

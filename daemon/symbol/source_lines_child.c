/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/source_lines_child.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dwarf.h>
#include <elfutils/libdw.h>

#include "common/array.h"
#include "common/base.h"
#include "common/demangle.h"
#include "common/search.h"
#include "daemon/host/sandbox.h"

/* A range of addresses whose debug information is in one compilation unit. */
struct unit_range {
	Dwarf_Addr start, end;
	Dwarf_Off unit;
};

struct debug_info {
	Dwarf *dwarf;
	struct unit_range *ranges;
	size_t n, ranges_capacity;
};

static int range_add(struct debug_info *info, Dwarf_Addr start, Dwarf_Addr end, Dwarf_Off unit)
{
	if (array_reserve(info->ranges, info->ranges_capacity, info->n + 1))
		return -ENOMEM;
	info->ranges[info->n++] = (struct unit_range){ start, end, unit };
	return 0;
}

static int compare_ranges(const void *x, const void *y)
{
	const struct unit_range *a = x, *b = y;

	return a->start < b->start ? -1 : a->start > b->start;
}

static int unit_read(struct debug_info *info, Dwarf_Off at)
{
	Dwarf_Addr base = 0, start, end;
	ptrdiff_t next = 0;
	Dwarf_Die die;
	int r = 0;

	if (!dwarf_offdie(info->dwarf, at, &die))
		return 0;
	while (!r && (next = dwarf_ranges(&die, next, &base, &start, &end)) > 0)
		r = end > start ? range_add(info, start, end, at) : 0;
	return r;
}

/*
 * Reads the address ranges of all compilation units. The section .debug_aranges could be read
 * faster, but clang and rustc do not write it.
 */
static int units_read(struct debug_info *info)
{
	Dwarf_Off at = 0, next;
	size_t header;
	int r = 0;

	while (!r && dwarf_nextcu(info->dwarf, at, &next, &header, NULL, NULL, NULL) == 0) {
		r = unit_read(info, at + header);
		at = next;
	}
	qsort(info->ranges, info->n, sizeof(*info->ranges), compare_ranges);
	return r;
}

static bool debug_info_open(struct debug_info *info, int fd)
{
	*info = (struct debug_info){ .dwarf = dwarf_begin(fd, DWARF_C_READ) };
	if (!info->dwarf)
		return false;
	return units_read(info) == 0 && info->n > 0;
}

static void debug_info_close(struct debug_info *info)
{
	dwarf_end(info->dwarf);
	free(info->ranges);
	*info = (struct debug_info){ 0 };
}

static bool unit_find(const struct debug_info *info, Dwarf_Addr at, Dwarf_Die *out)
{
	size_t n = SEARCH(info->n, i, info->ranges[i].start <= at);

	if (!n || at >= info->ranges[n - 1].end)
		return false;
	return dwarf_offdie(info->dwarf, info->ranges[n - 1].unit, out) != NULL;
}

struct source_line {
	const char *file;
	uint32_t line;
};

static struct source_line line_of(Dwarf_Die *unit, Dwarf_Addr at)
{
	Dwarf_Line *found = dwarf_getsrc_die(unit, at);
	struct source_line line = { 0 };
	int number = 0;

	if (!found)
		return line;
	line.file = dwarf_linesrc(found, NULL, NULL);
	if (dwarf_lineno(found, &number) == 0 && number > 0)
		line.line = (uint32_t)number;
	return line;
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

/* Returns the source line from which an inlined function is called. */
static struct source_line call_of(Dwarf_Die *die, Dwarf_Die *unit)
{
	struct source_line line = { .line = number_of(die, DW_AT_call_line) };
	uint32_t file = number_of(die, DW_AT_call_file);
	Dwarf_Files *files;
	size_t n;

	if (dwarf_getsrcfiles(unit, &files, &n) == 0 && file < n)
		line.file = dwarf_filesrc(files, file, NULL, NULL);
	return line;
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

static int frame_write(FILE *out, const char *name, const struct source_line *line)
{
	const struct lines_child_frame frame = {
		.line = line->line,
		.name_size = (uint16_t)text_size(name),
		.file_size = (uint16_t)text_size(line->file),
	};

	fwrite(&frame, sizeof(frame), 1, out);
	fwrite(name ? name : "", 1, frame.name_size, out);
	fwrite(line->file ? line->file : "", 1, frame.file_size, out);
	return ferror(out) ? -EIO : 0;
}

/*
 * Writes the frames of an address: one frame for each inlined function in `scopes`, innermost
 * first, then one frame for the function that contains them. `line` is the source line of the
 * address.
 */
static int scopes_write(FILE *out, Dwarf_Die *scopes, int n, Dwarf_Die *unit,
			struct source_line line)
{
	_cleanup_(freep) char *buffer = malloc(DEMANGLE_OUTPUT_MAX);
	struct lines_child_address head = { .frames = 1 };
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
			r = frame_write(out, name_of(&scopes[i], buffer), &line);
		else
			head.frames = 1; /* LINES_CHILD_DEPTH_MAX is reached: skip this function and
					    those after it */
		line = call_of(&scopes[i], unit);
	}
	return r ? r : frame_write(out, NULL, &line);
}

/*
 * Finds the DWARF scopes that contain an address, innermost first. After an inlined function comes
 * the scope into which it was inlined, not the scope in which it was declared.
 */
static int nest_of(Dwarf_Die *unit, Dwarf_Addr at, Dwarf_Die **out)
{
	_cleanup_(freep) Dwarf_Die *scopes = NULL;
	Dwarf_Die innermost;

	if (dwarf_getscopes(unit, at, &scopes) <= 0)
		return 0;
	innermost = scopes[0];
	return dwarf_getscopes_die(&innermost, out);
}

static int address_write(FILE *out, const struct debug_info *info, Dwarf_Addr at)
{
	static const struct lines_child_address none;
	_cleanup_(freep) Dwarf_Die *nest = NULL;
	struct source_line line;
	Dwarf_Die unit;
	int n;

	if (!info || !unit_find(info, at, &unit))
		return fwrite(&none, sizeof(none), 1, out) == 1 ? 0 : -EIO;
	line = line_of(&unit, at);
	if (!line.file)
		return fwrite(&none, sizeof(none), 1, out) == 1 ? 0 : -EIO;
	n = nest_of(&unit, at, &nest);
	return scopes_write(out, nest, n > 0 ? n : 0, &unit, line);
}

/*
 * Writes the reply for one file. Reads the debug information from the file itself or, if it has
 * none, from its separate debug file.
 */
static int file_write(FILE *out, const struct lines_child_file *file, unsigned int number,
		      const uint64_t *addresses)
{
	int fd = LINES_CHILD_FIRST_FD + 2 * (int)number, r = 0;
	struct debug_info info = { 0 };
	uint32_t has_lines;

	has_lines = file->has_file && debug_info_open(&info, fd);
	if (!has_lines && file->has_debug) {
		debug_info_close(&info);
		has_lines = debug_info_open(&info, fd + 1);
	}
	fwrite(&has_lines, sizeof(has_lines), 1, out);
	for (uint32_t i = 0; i < file->n && !r; i++)
		r = address_write(out, has_lines ? &info : NULL, addresses[i]);
	debug_info_close(&info);
	return r;
}

struct request {
	const struct lines_child_head *head;
	const struct lines_child_file *files;
	const uint64_t *addresses;
};

/* Maps the request into memory. It comes from the daemon and is checked only for mistakes. */
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

/*
 * Drops all privileges of this process and sets its limits. Called before the process reads the
 * first file, which may be hostile.
 */
static int process_limit(const struct lines_child_head *head)
{
	const struct sandbox_limits limits = {
		.memory_bytes = head->memory_bytes,
		.file_bytes = head->reply_bytes,
		.cpu_s = head->cpu_seconds,
	};
	int r = sandbox_enter(&limits);

	prctl(PR_SET_NAME, LINES_CHILD_NAME);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return r ? r : sandbox_close();
}

int lines_child_main(void)
{
	struct request request = { 0 };
	size_t at = 0;
	FILE *out;
	int r;

	/* The process opens its output first: later it can only read and write. */
	out = fdopen(LINES_CHILD_REPLY_FD, "w");
	r = out ? request_map(&request) : -errno;
	if (!r)
		r = process_limit(request.head);
	if (r)
		return EXIT_FAILURE;
	for (unsigned int i = 0; i < request.head->n_files && !r; i++) {
		r = file_write(out, &request.files[i], i, request.addresses + at);
		at += request.files[i].n;
		/* Write the reply for this file out now: the daemon can use it even if the next
		 * file makes this process crash. */
		if (!r && fflush(out) == EOF)
			r = -EIO;
	}
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

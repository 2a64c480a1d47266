/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/unwind/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/unwind_shared.h"
#include "common/array.h"
#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/unwind/rule.h"
#include "daemon/unwind/survey.h"

enum {
	/* a gap of at most this many bytes between two functions counts as padding */
	PADDING_MAX = 15,
	ENTRY_BYTES = 32, /* assumed size in bytes of the program's start code if it has no call
			     frame information, as in musl and Go */
	/*
	 * if at most this number of bytes without call frame information follow the program's
	 * start, all of them count as its start code, as in ld.so
	 */
	ENTRY_BYTES_ALONE = 64,
	RULES_MAX = 256, /* maximum number of rules of one file; real files have some dozen */
	RULE_SLOTS = 4 * RULES_MAX,
	FRAMES_MAX = UINT16_MAX, /* maximum number of frames of one file; libLLVM has 2,000 */
	FRAME_SLOTS = 1 << 17,	 /* number of slots of the hash table of frames */
	PAGE = 1 << UNWIND_PAGE_SHIFT,
	/*
	 * maximum bytes of CFI instructions that are executed, as a multiple of the size that the
	 * section has in the file
	 */
	CODE_FACTOR = 16,
	CODE_SPARE = 1 << 16,
	/*
	 * maximum number of surveys of the code in one file; in a larger file, each survey of a
	 * part of the code stands for the parts behind it, too
	 */
	SURVEYS_MAX = 512,
	SURVEY_BYTES = 8192, /* maximum number of bytes of code that one survey reads */
	/*
	 * if a survey has read fewer bytes, most code there has call frame information, and nothing
	 * is concluded from the rest of the file
	 */
	SURVEY_BYTES_MIN = 2048,
};

/*
 * A function. Its unwind rows are n members of the compiler's array rows[], from rows[first] on.
 * `number` is the number of functions that were added before it.
 */
struct function {
	uint32_t start, end;
	uint32_t first, n;
	uint32_t number;
};

/*
 * What is known of code without call frame information in one part of the file, or in several
 * parts if the file is large.
 */
struct gap_survey {
	struct survey survey;
	uint32_t bytes; /* number of bytes that were read */
};

/* An unwind row: from the address pc on, the frame with the index `frame` applies. */
struct row {
	uint32_t pc; /* relative to the base of the extent (the range of the file's code) */
	uint32_t frame;
};

struct unwind_compiler {
	struct unwind_extent extent;
	size_t max_words;
	struct function *functions;
	size_t n_functions, functions_capacity;
	struct row *rows;
	size_t n_rows, rows_capacity;
	struct unwind_frame *frames; /* all frames, each only once; the first is the invalid
					frame */
	size_t n_frames, frames_capacity;
	uint16_t *frame_slots; /* hash table of indices into frames[]; 0: the slot is free */
	struct unwind_rule *rules;
	size_t n_rules;
	uint16_t rule_slots[RULE_SLOTS]; /* hash table of indexes of `rules` plus 1; 0: free */
	/*
	 * For each part of the code, whether its functions are compiled; NULL: those of all parts
	 * are. If it is not NULL, the frames and rules are those of an earlier table, which had
	 * n_known_frames and n_known_rules of them.
	 */
	bool *is_near;
	size_t n_known_frames, n_known_rules;
	/*
	 * the function that is being compiled is a signal trampoline, to which signal handlers
	 * return
	 */
	bool is_signal;
	unwind_code_reader *read; /* NULL: code is not surveyed */
	void *read_userdata;
	struct gap_survey *surveys;
	uint32_t survey_parts; /* number of parts that each survey stands for */
	/* most code without call frame information keeps frame pointers */
	bool keeps_frames;
};

static uint32_t pages_of(const struct unwind_extent *extent)
{
	return (uint32_t)((extent->size + PAGE - 1) >> UNWIND_PAGE_SHIFT);
}

static uint32_t parts_of(uint32_t n_pages)
{
	return (n_pages + UNWIND_PART_PAGES - 1) / UNWIND_PART_PAGES;
}

int unwind_compiler_new(const struct unwind_extent *extent, size_t max_words,
			struct unwind_compiler **out)
{
	struct unwind_compiler *compiler;

	/*
	 * Each page of code (2 KiB) takes at least one row, so the rows of a large file may exceed
	 * the limit even without functions.
	 */
	if (!extent->size || extent->size > UINT32_MAX || pages_of(extent) >= max_words ||
	    extent->base > UINT64_MAX - extent->size || max_words > UINT32_MAX / 2)
		return -E2BIG;
	compiler = calloc(1, sizeof(*compiler));
	if (!compiler)
		return -ENOMEM;
	compiler->extent = *extent;
	compiler->max_words = max_words;
	compiler->rules = calloc(RULES_MAX, sizeof(*compiler->rules));
	compiler->frame_slots = calloc(FRAME_SLOTS, sizeof(*compiler->frame_slots));
	compiler->frames = calloc(1, sizeof(*compiler->frames));
	if (!compiler->rules || !compiler->frame_slots || !compiler->frames) {
		unwind_compiler_free(compiler);
		return -ENOMEM;
	}
	compiler->n_frames = compiler->frames_capacity = 1;
	*out = compiler;
	return 0;
}

struct unwind_compiler *unwind_compiler_free(struct unwind_compiler *compiler)
{
	if (!compiler)
		return NULL;
	free(compiler->functions);
	free(compiler->rows);
	free(compiler->frames);
	free(compiler->frame_slots);
	free(compiler->rules);
	free(compiler->is_near);
	free(compiler->surveys);
	free(compiler);
	return NULL;
}

void unwind_compiler_freep(struct unwind_compiler **compiler)
{
	unwind_compiler_free(*compiler);
}

/*
 * Returns the slot of the rule in rule_slots: the slot that has the rule's index plus 1, or the
 * free slot where it would be. There is always a free slot.
 */
static uint16_t *rule_slot(struct unwind_compiler *compiler, const struct unwind_rule *rule)
{
	size_t i = hash64(HASH64_SEED, rule, sizeof(*rule)) % RULE_SLOTS;

	while (compiler->rule_slots[i] &&
	       memcmp(&compiler->rules[compiler->rule_slots[i] - 1], rule, sizeof(*rule)) != 0)
		i = (i + 1) % RULE_SLOTS;
	return &compiler->rule_slots[i];
}

/*
 * Returns the index of the rule; adds the rule if it is new. Returns -1 when there are too many
 * rules.
 */
static int rule_number(struct unwind_compiler *compiler, const struct unwind_rule *rule)
{
	uint16_t *slot = rule_slot(compiler, rule);

	if (!*slot && compiler->n_rules == RULES_MAX)
		return -1;
	if (!*slot) {
		compiler->rules[compiler->n_rules++] = *rule;
		*slot = (uint16_t)compiler->n_rules;
	}
	return *slot - 1;
}

/*
 * Finds the index of the frame; adds the frame if it is new. Sets *out to 0, the index of the
 * invalid frame, when there are too many frames. Returns 0 or -ENOMEM.
 */
static int frame_number(struct unwind_compiler *compiler, const struct unwind_frame *frame,
			uint32_t *out)
{
	static const struct unwind_frame invalid;
	uint64_t hash;
	uint32_t slot;

	*out = 0;
	if (!memcmp(frame, &invalid, sizeof(invalid)))
		return 0;
	memcpy(&hash, frame, sizeof(hash));
	hash *= UINT64_C(0x9e3779b97f4a7c15);
	for (slot = (uint32_t)(hash >> 47); compiler->frame_slots[slot];
	     slot = (slot + 1) % FRAME_SLOTS) {
		if (!memcmp(&compiler->frames[compiler->frame_slots[slot]], frame,
			    sizeof(*frame))) {
			*out = compiler->frame_slots[slot];
			return 0;
		}
	}
	if (compiler->n_frames == FRAMES_MAX)
		return 0;
	if (array_reserve(compiler->frames, compiler->frames_capacity, compiler->n_frames + 1))
		return -ENOMEM;
	*out = (uint32_t)compiler->n_frames;
	compiler->frames[compiler->n_frames++] = *frame;
	compiler->frame_slots[slot] = (uint16_t)*out;
	return 0;
}

/* Adds the frames and rules of an earlier table, in the order that they have there. */
static int frames_take(struct unwind_compiler *compiler, const struct unwind_wanted *wanted)
{
	const struct unwind_frame *frames = (const struct unwind_frame *)wanted->frames;
	uint32_t number, rule;

	if (!wanted->n_frames || wanted->n_frames > FRAMES_MAX || wanted->n_rules > RULES_MAX)
		return -EBADMSG;
	for (uint32_t i = 1; i < wanted->n_frames; i++) {
		struct unwind_frame frame = frames[i];
		int r;

		if (frame.kind == UNWIND_RULE) {
			rule = (uint32_t)(frame.cfa - (int32_t)wanted->n_frames) / 2;
			if (rule >= wanted->n_rules)
				return -EBADMSG;
			frame.cfa = (int32_t)rule;
		}
		r = frame_number(compiler, &frame, &number);
		if (r || number != i)
			return r ? r : -EBADMSG;
	}
	memcpy(compiler->rules, frames + wanted->n_frames,
	       wanted->n_rules * sizeof(*compiler->rules));
	compiler->n_rules = compiler->n_known_rules = wanted->n_rules;
	for (size_t i = 0; i < compiler->n_rules; i++) {
		uint16_t *slot = rule_slot(compiler, &compiler->rules[i]);

		if (!*slot)
			*slot = (uint16_t)(i + 1);
	}
	compiler->n_known_frames = wanted->n_frames;
	return 0;
}

/* Returns how many parts of the file one survey stands for. */
static uint32_t survey_parts(const struct unwind_compiler *compiler)
{
	return 1 + (parts_of(pages_of(&compiler->extent)) - 1) / SURVEYS_MAX;
}

int unwind_compiler_survey(struct unwind_compiler *compiler, unwind_code_reader *read,
			   void *userdata)
{
	compiler->survey_parts = survey_parts(compiler);
	compiler->surveys = calloc(SURVEYS_MAX, sizeof(*compiler->surveys));
	if (!compiler->surveys)
		return -ENOMEM;
	compiler->read = read;
	compiler->read_userdata = userdata;
	return 0;
}

int unwind_compiler_limit(struct unwind_compiler *compiler, const struct unwind_wanted *wanted)
{
	const struct unwind_extent *extent = &compiler->extent;
	uint32_t n_parts = parts_of(pages_of(extent)), first, last;
	/*
	 * The functions of the neighbours of a part are needed as well: whether code belongs to a
	 * function, to padding or to a large gap depends on where other functions begin and end.
	 */
	uint32_t reach = 1 + (extent->kept_bytes_min >> UNWIND_PART_SHIFT);

	compiler->is_near = calloc(n_parts, sizeof(*compiler->is_near));
	if (!compiler->is_near)
		return -ENOMEM;
	for (size_t i = 0; i < wanted->n; i++) {
		if (wanted->parts[i] >= n_parts)
			return -EBADMSG;
		first = wanted->parts[i] > reach ? wanted->parts[i] - reach : 0;
		last = n_parts - 1 - wanted->parts[i] > reach ? wanted->parts[i] + reach
							      : n_parts - 1;
		memset(compiler->is_near + first, true, last - first + 1);
		/* The part whose survey stands for this one has to have its functions as well. */
		compiler->is_near[wanted->parts[i] - wanted->parts[i] % survey_parts(compiler)] =
			true;
	}
	return frames_take(compiler, wanted);
}

/* True if the rows of a function are needed. Its addresses are relative to the base. */
static bool is_needed(const struct unwind_compiler *compiler, uint32_t start, uint32_t end)
{
	if (!compiler->is_near)
		return true;
	for (uint32_t i = start >> UNWIND_PART_SHIFT; i <= (end - 1) >> UNWIND_PART_SHIFT; i++)
		if (compiler->is_near[i])
			return true;
	return false;
}

int unwind_compiler_row(struct unwind_compiler *compiler, uint64_t address,
			const struct unwind_frame *frame)
{
	struct function *function = &compiler->functions[compiler->n_functions];
	uint32_t number;
	int r = frame_number(compiler, frame, &number);

	if (r)
		return r;
	if (function->n && compiler->rows[compiler->n_rows - 1].frame == number)
		return 0;
	if (compiler->n_rows >= 2 * compiler->max_words)
		return -E2BIG;
	if (array_reserve(compiler->rows, compiler->rows_capacity, compiler->n_rows + 1))
		return -ENOMEM;
	compiler->rows[compiler->n_rows++] =
		(struct row){ (uint32_t)(address - compiler->extent.base), number };
	function->n++;
	return 0;
}

static int on_registers(void *userdata, uint64_t address, const struct cfi_registers *registers)
{
	struct unwind_compiler *compiler = userdata;
	struct unwind_frame frame;
	struct unwind_rule rule;
	int number;

	if (!unwind_rule_make(registers, compiler->is_signal, &frame, &rule) &&
	    frame.kind == UNWIND_RULE) {
		number = rule_number(compiler, &rule);
		frame.kind = number < 0 ? UNWIND_INVALID : UNWIND_RULE;
		frame.cfa = number < 0 ? 0 : number;
		frame.bx = number < 0 ? 0 : frame.bx;
	}
	return unwind_compiler_row(compiler, address, &frame);
}

int unwind_compiler_begin(struct unwind_compiler *compiler, uint64_t start, uint64_t end)
{
	const struct unwind_extent *extent = &compiler->extent;

	if (start < extent->base || end > extent->base + extent->size || end <= start)
		return -ERANGE;
	if (!is_needed(compiler, (uint32_t)(start - extent->base), (uint32_t)(end - extent->base)))
		return -ERANGE;
	if (compiler->n_functions >= compiler->max_words)
		return -E2BIG;
	if (array_reserve(compiler->functions, compiler->functions_capacity,
			  compiler->n_functions + 1))
		return -ENOMEM;
	compiler->functions[compiler->n_functions] = (struct function){
		.start = (uint32_t)(start - extent->base),
		.end = (uint32_t)(end - extent->base),
		.first = (uint32_t)compiler->n_rows,
		.number = (uint32_t)compiler->n_functions,
	};
	return 0;
}

void unwind_compiler_end(struct unwind_compiler *compiler)
{
	if (compiler->functions[compiler->n_functions].n)
		compiler->n_functions++;
}

void unwind_compiler_cancel(struct unwind_compiler *compiler)
{
	struct function *function = &compiler->functions[compiler->n_functions];

	compiler->n_rows = function->first;
	function->n = 0;
}

struct adding {
	struct unwind_compiler *compiler;
	const struct cfi_section *section;
	uint64_t budget;
};

static int on_function(void *userdata, const struct cfi_function *found)
{
	struct adding *adding = userdata;
	struct unwind_compiler *compiler = adding->compiler;
	int r = unwind_compiler_begin(compiler, found->start, found->end);

	if (r == -ERANGE)
		return 0; /* the linker has dropped the function, or the address is not in the
			     file's code, or the function is not wanted */
	if (r)
		return r;
	compiler->is_signal = found->cie->is_signal;
	r = cfi_execute(adding->section, found, &adding->budget, on_registers, compiler);
	if (r == -EBADMSG) {
		/* The frame for a function whose call frame information has an error. It replaces
		 * all rows of the function, because those that were read before the error may be
		 * wrong, too. */
		static const struct unwind_frame invalid = { 0 };

		unwind_compiler_cancel(compiler);
		r = unwind_compiler_row(compiler, found->start, &invalid);
	}
	if (!r)
		unwind_compiler_end(compiler);
	return r;
}

int unwind_compiler_add(struct unwind_compiler *compiler, const struct cfi_section *section)
{
	struct adding adding = {
		.compiler = compiler,
		.section = section,
		.budget = (uint64_t)(section->stored ? section->stored : section->size) *
				  CODE_FACTOR +
			  CODE_SPARE,
	};

	return cfi_for_each(section, on_function, &adding);
}

static int function_compare(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* The unwind rows of all functions of a file, sorted by address. */
struct output {
	const struct unwind_compiler *compiler;
	struct row *rows;
	size_t n, most;
	uint32_t gap, entry; /* gap: index of the frame for code that no function covers; entry:
				index of the frame for the program's start */
	/* index of the frame for such code where a survey found that it keeps frame pointers */
	uint32_t proved;
};

static int output_add(struct output *out, uint32_t pc, uint32_t frame)
{
	/*
	 * A function ends where the next one begins, so drop rows of earlier functions that begin
	 * at or behind pc.
	 */
	while (out->n && out->rows[out->n - 1].pc >= pc)
		out->n--;
	if (out->n && out->rows[out->n - 1].frame == frame)
		return 0;
	if (out->n == out->most)
		return -E2BIG;
	out->rows[out->n++] = (struct row){ pc, frame };
	return 0;
}

/* Returns the survey that stands for a part of the code. */
static struct gap_survey *survey_of(const struct unwind_compiler *compiler, uint32_t part)
{
	return &compiler->surveys[part / compiler->survey_parts];
}

/*
 * Surveys the code from `start` to `end`, which no function covers, in those parts of the file
 * that are surveyed.
 */
static void gap_survey(const struct unwind_compiler *compiler, uint32_t start, uint32_t end)
{
	uint8_t code[SURVEY_BYTES];

	for (uint32_t at = start, next; at < end; at = next) {
		uint32_t part = at >> UNWIND_PART_SHIFT, n;
		struct gap_survey *survey = survey_of(compiler, part);

		next = end >> UNWIND_PART_SHIFT == part ? end : (part + 1) << UNWIND_PART_SHIFT;
		if (part % compiler->survey_parts ||
		    (compiler->is_near && !compiler->is_near[part]))
			continue;
		n = next - at < SURVEY_BYTES - survey->bytes ? next - at
							     : SURVEY_BYTES - survey->bytes;
		survey->bytes += n;
		if (n &&
		    compiler->read(compiler->read_userdata, compiler->extent.base + at, code, n))
			survey_add(&survey->survey, compiler->extent.base + at, code, n);
	}
}

/* True if the code of a part that no function covers keeps frame pointers. */
static bool part_keeps_frames(const struct unwind_compiler *compiler, uint32_t part)
{
	const struct gap_survey *gap = survey_of(compiler, part);

	if (compiler->keeps_frames && gap->bytes >= SURVEY_BYTES_MIN)
		return !survey_is_bare(&gap->survey);
	return survey_keeps_frames(&gap->survey);
}

/* Surveys all code that no function covers. The functions are sorted. */
static void gaps_survey(const struct unwind_compiler *compiler)
{
	uint32_t end = 0;

	for (size_t i = 0; i < compiler->n_functions; i++) {
		const struct function *function = &compiler->functions[i];

		if (function->start > end && function->start - end > PADDING_MAX)
			gap_survey(compiler, end, function->start);
		if (function->end > end)
			end = function->end;
	}
	gap_survey(compiler, end, (uint32_t)compiler->extent.size);
}

/*
 * Makes the frame for code that a survey has found to keep frame pointers. Its member cfa, which
 * walks do not need, says whether most code of the file does: where only parts of the file are
 * compiled, this is known from the earlier table. Sets *out to 0 if there is no such code.
 */
static int proved_frame(struct unwind_compiler *compiler, uint32_t *out)
{
	struct unwind_frame frame = { .kind = UNWIND_FRAME_PROVED };
	struct survey sum = { 0 };
	bool is_proved = false;

	*out = 0;
	gaps_survey(compiler);
	for (uint32_t i = 0; i < SURVEYS_MAX; i++) {
		const struct survey *survey = &compiler->surveys[i].survey;

		is_proved = is_proved || survey_keeps_frames(survey);
		sum.framed += survey->framed;
		sum.bare += survey->bare;
	}
	compiler->keeps_frames = survey_keeps_frames(&sum);
	for (size_t i = 1; i < compiler->n_known_frames; i++) {
		if (compiler->frames[i].kind != UNWIND_FRAME_PROVED)
			continue;
		compiler->keeps_frames = compiler->frames[i].cfa;
		*out = (uint32_t)i;
	}
	frame.cfa = compiler->keeps_frames;
	return is_proved && !compiler->is_near ? frame_number(compiler, &frame, out) : 0;
}

/*
 * Adds rows for the code from `start` to `end`, which no function covers and which is not known to
 * keep frame pointers in the whole file. Parts of the file may keep them.
 */
static int output_add_surveyed(struct output *out, uint32_t start, uint32_t end)
{
	const struct unwind_compiler *compiler = out->compiler;
	int r = 0;

	if (!out->proved)
		return output_add(out, start, 0);
	for (uint32_t at = start, part; at < end && !r; at = (part + 1) << UNWIND_PART_SHIFT) {
		part = at >> UNWIND_PART_SHIFT;
		r = output_add(out, at, part_keeps_frames(compiler, part) ? out->proved : 0);
		if (part == UINT32_MAX >> UNWIND_PART_SHIFT)
			break;
	}
	return r;
}

/*
 * Adds rows for the code from `start` to `end`, which no function covers. If the program's entry
 * point is in this range, also adds a row that makes stack walks end at the entry point.
 */
static int output_add_gap(struct output *out, uint32_t start, uint32_t end)
{
	const struct unwind_extent *extent = &out->compiler->extent;
	uint64_t entry = extent->entry - extent->base;
	uint32_t gap = end - start < extent->kept_bytes_min ? 0 : out->gap;
	int r = gap ? output_add(out, start, gap) : output_add_surveyed(out, start, end);

	if (r || extent->entry < extent->base || entry < start || entry >= end)
		return r;
	r = output_add(out, (uint32_t)entry, out->entry);
	/*
	 * Only ENTRY_BYTES from the entry point on are the program's start code; other code
	 * follows.
	 */
	if (r || end - entry <= ENTRY_BYTES_ALONE)
		return r;
	start = (uint32_t)entry + ENTRY_BYTES;
	return gap ? output_add(out, start, gap) : output_add_surveyed(out, start, end);
}

static int output_fill(struct output *out)
{
	const struct unwind_compiler *compiler = out->compiler;
	uint32_t size = (uint32_t)compiler->extent.size, end = 0, i, j;
	int r = 0;

	for (i = 0; i < compiler->n_functions && !r; i++) {
		const struct function *function = &compiler->functions[i];

		if (i && function->start == compiler->functions[i - 1].start)
			continue;
		if (function->start > end && (!i || function->start - end > PADDING_MAX))
			r = output_add_gap(out, end, function->start);
		for (j = 0; j < function->n && !r; j++) {
			const struct row *row = &compiler->rows[function->first + j];

			r = output_add(out, row->pc, row->frame);
		}
		end = function->end;
	}
	if (r)
		return r;
	return end < size ? output_add_gap(out, end, size) : 0;
}

/*
 * Adds the rows of a page (2 KiB of code). The first row is for the beginning of the page, even if
 * the end of the page before has the same frame.
 */
static void page_fill(const struct output *out, uint32_t page, size_t *next,
		      struct unwind_row *rows, uint32_t *n)
{
	uint32_t frame = *next ? out->rows[*next - 1].frame : 0;

	if (*next < out->n && out->rows[*next].pc == (uint64_t)page * PAGE)
		frame = out->rows[(*next)++].frame;
	rows[(*n)++] = (struct unwind_row){ 0, (uint16_t)frame };
	for (; *next < out->n && out->rows[*next].pc / PAGE == page; (*next)++)
		rows[(*n)++] = (struct unwind_row){ (uint16_t)(out->rows[*next].pc % PAGE),
						    (uint16_t)out->rows[*next].frame };
}

/*
 * Fills the memory of one part, which is 32 KiB of code. `halves` is this memory as an array of
 * half words of 4 bytes each. Writes one entry for each page of the part, and then the rows of all
 * pages. Returns the number of rows.
 */
static uint32_t part_fill(const struct output *out, uint32_t first_page, uint32_t n_pages,
			  size_t *next, uint32_t *halves)
{
	struct unwind_row *rows = (struct unwind_row *)(halves + UNWIND_PART_PAGES);
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_pages; i++) {
		uint32_t first = n;

		page_fill(out, first_page + i, next, rows, &n);
		halves[i] = first << UNWIND_ROWS_BITS | (n - first);
	}
	return n;
}

static uint32_t parts_fill(const struct output *out, uint32_t n_pages, struct unwind_rows *rows)
{
	struct unwind_part *parts = (struct unwind_part *)rows->words;
	uint32_t at = 2 * (uint32_t)unwind_rows_head(rows), n_rows = 0, n;
	size_t next = 0;

	for (uint32_t i = 0; i < rows->n_parts; i++) {
		uint32_t page = i * UNWIND_PART_PAGES;

		n = part_fill(out, page,
			      n_pages - page < UNWIND_PART_PAGES ? n_pages - page
								 : UNWIND_PART_PAGES,
			      &next, (uint32_t *)rows->words + at);
		parts[i].at = at;
		at += (UNWIND_PART_PAGES + n + 1) / 2 * 2;
		n_rows += n;
	}
	rows->n_words = at / 2;
	return n_rows;
}

size_t unwind_rows_part(const struct unwind_rows *rows, uint32_t part, uint32_t *n_out)
{
	const struct unwind_part *parts = (const struct unwind_part *)rows->words;
	size_t first = parts[part].at / 2;
	size_t end = part + 1 < rows->n_parts ? parts[part + 1].at / 2 : rows->n_words;

	*n_out = (uint32_t)(end - first);
	return first;
}

/*
 * Returns the largest number of half words (4 bytes) that the rows can take: one for each row, one
 * for an extra row at the beginning of each page of code, and one to align each part of the rows.
 */
static size_t rows_most(const struct output *out, uint32_t n_pages)
{
	size_t n = (size_t)n_pages + parts_of(n_pages), i;

	for (i = 0; i < out->n; i++)
		n += out->rows[i].pc % PAGE != 0;
	return n;
}

/*
 * Copies frames and rules to the table. In the table, a frame refers to its rule by the distance in
 * words from the table's first frame to the rule.
 */
static void frames_fill(const struct unwind_compiler *compiler, struct unwind_frame *frames)
{
	for (size_t i = 0; i < compiler->n_frames; i++) {
		frames[i] = compiler->frames[i];
		if (frames[i].kind == UNWIND_RULE)
			frames[i].cfa = (int32_t)compiler->n_frames + 2 * frames[i].cfa;
	}
	memcpy(frames + compiler->n_frames, compiler->rules,
	       compiler->n_rules * sizeof(*compiler->rules));
}

static int rows_encode(const struct output *out, struct unwind_rows *rows)
{
	const struct unwind_compiler *compiler = out->compiler;
	uint32_t n_pages = pages_of(&compiler->extent);
	struct unwind_rows encoded = {
		.n_parts = parts_of(n_pages),
		.n_frames = (uint32_t)compiler->n_frames,
		.n_rules = (uint32_t)compiler->n_rules,
	};
	size_t most =
		unwind_rows_head(&encoded) +
		((size_t)encoded.n_parts * UNWIND_PART_PAGES + rows_most(out, n_pages) + 1) / 2;

	if (most > compiler->max_words)
		return -E2BIG;
	encoded.words = calloc(most, sizeof(*encoded.words));
	if (!encoded.words)
		return -ENOMEM;
	frames_fill(compiler,
		    (struct unwind_frame *)(encoded.words + unwind_rows_frames(&encoded)));
	encoded.n_rows = parts_fill(out, n_pages, &encoded);
	*rows = encoded;
	return 0;
}

/*
 * Finds the indexes of the frames for code that no function covers. Returns -ENODATA if the file
 * has no rows, or -ESTALE if wanted parts have other frames than the earlier table.
 */
static int output_frames(struct unwind_compiler *compiler, struct output *out)
{
	static const struct unwind_frame kept = { .kind = UNWIND_FRAME },
					 end = { .kind = UNWIND_END };
	int r = compiler->read ? proved_frame(compiler, &out->proved) : 0;

	if (r)
		return r;
	if (!compiler->n_functions && !compiler->extent.keeps_frame_pointers && !out->proved &&
	    !compiler->is_near)
		return -ENODATA;
	if (compiler->extent.keeps_frame_pointers) {
		r = frame_number(compiler, &kept, &out->gap);
		if (r)
			return r;
	}
	r = frame_number(compiler, &end, &out->entry);
	if (r)
		return r;
	return compiler->is_near && (compiler->n_frames != compiler->n_known_frames ||
				     compiler->n_rules != compiler->n_known_rules)
		       ? -ESTALE
		       : 0;
}

int unwind_compiler_finish(struct unwind_compiler *compiler, struct unwind_rows *out)
{
	/*
	 * Each gap between functions takes one row, the gap with the program's start takes three,
	 * and a gap takes one more in each part of the file that it reaches into.
	 */
	size_t most = compiler->n_rows + 3 * compiler->n_functions + 3 +
		      2 * (size_t)parts_of(pages_of(&compiler->extent));
	struct output output = { .compiler = compiler, .most = most };
	int r;

	if (compiler->n_functions)
		qsort(compiler->functions, compiler->n_functions, sizeof(*compiler->functions),
		      function_compare);
	r = output_frames(compiler, &output);
	if (r)
		return r;
	output.rows = calloc(most, sizeof(*output.rows));
	if (!output.rows)
		return -ENOMEM;
	r = output_fill(&output);
	if (!r)
		r = rows_encode(&output, out);
	free(output.rows);
	return r;
}

void unwind_wanted_fini(struct unwind_wanted *wanted)
{
	free(wanted->parts);
	free(wanted->frames);
	*wanted = (struct unwind_wanted){ 0 };
}

void unwind_rows_fini(struct unwind_rows *rows)
{
	free(rows->words);
	*rows = (struct unwind_rows){ 0 };
}

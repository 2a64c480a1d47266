/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/unwind/compile_go.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/unwind_shared.h"
#include "common/base.h"

enum {
	WORD = 8,
	CODE_BYTES = 64 * 1024, /* size in bytes of the buffer for code of the file */
	SAVE_BYTES = 8,		/* size in bytes of the longest instruction that saves bp */
	STEPS_FACTOR = 16, /* maximum number of bytes that are read from Go's table, as a multiple
			      of the table's size */
	STEPS_SPARE = 1 << 16,
	NOWHERE = -1,
};

/* How a stack walk finds the caller of a function. */
enum way {
	WAY_STEPS,  /* walks find the caller by sp: the steps in Go's table say how far the
		       function has moved sp */
	WAY_FIRST,  /* the function has no caller, so stack walks end there */
	WAY_PARKS,  /* walks find the caller by sp until the function moves sp; then they end,
		       because the function has left the goroutine that called it */
	WAY_SWITCH, /* walks find the caller by bp: Go's table does not say on which stack the
		       function runs */
	WAY_LOST,   /* walks cannot find the caller: it is not on the stack, and bp does not lead to
		       it */
	WAY_SIGNAL, /* signal handlers return to the function; walks find the interrupted function
		       by the frame that the kernel made for the signal */
};

static const struct {
	const char *name;
	enum way way;
} known[] = {
	{ "_rt0_amd64", WAY_FIRST },
	{ "_rt0_amd64_linux", WAY_FIRST },
	/* Go's table says that runtime.clone writes sp, but it does so only for the new thread, not
	 * for the thread that calls it. */
	{ "runtime.clone", WAY_STEPS },
	{ "runtime.mcall", WAY_PARKS },
	/*
	 * runtime.morestack is called before its caller has made a frame, and continues at the base
	 * of another stack, that of the scheduler.
	 */
	{ "runtime.morestack", WAY_LOST },
	{ "runtime.sigreturn", WAY_SIGNAL },
	{ "runtime.sigreturn__sigaction", WAY_SIGNAL },
	/*
	 * Go's table marks runtime.sigtramp as a function without a caller. Like any other signal
	 * handler it has one, and sp leads to it.
	 */
	{ "runtime.sigtramp", WAY_STEPS },
};

struct code {
	const struct elf_source *source;
	const struct elf_file *file;
	uint64_t address;
	size_t n;
	uint8_t bytes[CODE_BYTES];
};

struct adding {
	struct unwind_compiler *compiler;
	struct code *code;
	enum way way;
	bool has_frame; /* one of the function's steps moves sp; only set if `way` is WAY_SWITCH */
	bool is_moved;	/* a step before the present one in Go's table has moved sp */
	int64_t saved;	/* code address from which on bp is saved below the return address; or
			   NOWHERE */
};

static enum way way_of(const struct go_function *function, uint64_t entry)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strlen(known[i].name) == function->name_size &&
		    !memcmp(known[i].name, function->name, function->name_size))
			return known[i].way;
	if (function->is_first || (entry >= function->start && entry < function->end))
		return WAY_FIRST;
	return function->writes_sp ? WAY_SWITCH : WAY_STEPS;
}

static void code_fill(struct code *code, uint64_t address)
{
	const struct elf_source *source = code->source;

	code->n = 0;
	code->address = address;
	for (size_t i = 0; i < code->file->n_segments; i++) {
		const struct elf_segment *segment = &code->file->segments[i];
		uint64_t from = address - segment->address, at = segment->offset + from;
		size_t n = sizeof(code->bytes);
		ssize_t r;

		if (!segment->is_exec || address < segment->address || from >= segment->size)
			continue;
		if (n > segment->size - from)
			n = (size_t)(segment->size - from);
		if (!source->image) {
			r = at > INT64_MAX ? -1 : pread(source->fd, code->bytes, n, (off_t)at);
			code->n = r < 0 ? 0 : (size_t)r;
		} else if (at < source->image_size) {
			code->n = n < source->image_size - at ? n : source->image_size - at;
			memcpy(code->bytes, (const uint8_t *)source->image + at, code->n);
		}
		return;
	}
}

/* Returns the n bytes of code at the address; NULL if the file has fewer bytes there. */
static const uint8_t *code_at(struct code *code, uint64_t address, size_t n)
{
	if (address < code->address || address - code->address > code->n ||
	    code->n - (address - code->address) < n)
		code_fill(code, address);
	return code->n - (address - code->address) < n ? NULL
						       : code->bytes + (address - code->address);
}

/*
 * Returns the address behind the instruction by which the function saves bp, or NOWHERE. Go code
 * saves bp by push %rbp. Before Go 1.21, it made room for the whole frame and then stored bp in the
 * frame's last word (mov %rbp,N(%rsp)). Functions in assembler may not save bp.
 */
static int64_t saved_find(struct code *code, const struct go_step *step)
{
	static const uint8_t store[] = { 0x48, 0x89 };
	uint32_t offset = step->depth - WORD;
	const uint8_t *bytes = code_at(code, step->start - 1, 1 + SAVE_BYTES);
	size_t n = 0;
	int32_t said = 0;

	if (!bytes)
		return NOWHERE;
	if (bytes[0] == 0x55)
		return step->depth == WORD ? (int64_t)step->start : NOWHERE;
	bytes++;
	if (memcmp(bytes, store, sizeof(store)) || bytes[3] != 0x24)
		return NOWHERE;
	if (bytes[2] == 0x2c) {
		n = 4;
	} else if (bytes[2] == 0x6c) {
		n = 5;
		said = (int8_t)bytes[4];
	} else if (bytes[2] == 0xac) {
		n = 8;
		memcpy(&said, bytes + 4, sizeof(said));
	}
	return n && said >= 0 && (uint32_t)said == offset ? (int64_t)(step->start + n) : NOWHERE;
}

static struct unwind_frame frame_of(const struct adding *adding, const struct go_step *step,
				    bool is_saved)
{
	static const struct unwind_frame switched = {
		.kind = UNWIND_SWITCH, .cfa = 2, .bp = -2, .bx = UNWIND_BX_LOST
	};
	struct unwind_frame frame = { .kind = UNWIND_SP, .bx = UNWIND_BX_LOST };

	switch (adding->way) {
	case WAY_FIRST:
		return (struct unwind_frame){ .kind = UNWIND_END };
	case WAY_SIGNAL:
		return (struct unwind_frame){ .kind = UNWIND_SIGNAL };
	case WAY_LOST:
		return (struct unwind_frame){ .kind = UNWIND_INVALID };
	case WAY_PARKS:
		if (step->depth)
			return (struct unwind_frame){ .kind = UNWIND_END };
		break;
	case WAY_SWITCH:
		/*
		 * Walk by bp if the function has saved it, or if the function never saves it,
		 * because bp then still has the value that it had in the caller.
		 */
		if (is_saved || (step->depth ? adding->saved < 0 : !adding->has_frame))
			return switched;
		break;
	case WAY_STEPS:
		break;
	}
	if (step->depth % WORD)
		return (struct unwind_frame){ .kind = UNWIND_INVALID };
	frame.cfa = (int32_t)(step->depth / WORD) + 1;
	frame.bp = is_saved ? -2 : 0;
	return frame;
}

static int on_step(void *userdata, const struct go_step *step)
{
	struct adding *adding = userdata;
	struct unwind_frame frame;
	bool is_saved;
	int r;

	if (step->depth && !adding->is_moved) {
		adding->is_moved = true;
		adding->saved = saved_find(adding->code, step);
	}
	is_saved = step->depth && adding->saved >= 0 && adding->saved <= (int64_t)step->start;
	frame = frame_of(adding, step, is_saved);
	r = unwind_compiler_row(adding->compiler, step->start, &frame);
	if (r || is_saved || !step->depth || adding->saved < 0 ||
	    adding->saved >= (int64_t)step->end)
		return r;
	frame = frame_of(adding, step, true);
	return unwind_compiler_row(adding->compiler, (uint64_t)adding->saved, &frame);
}

static int on_frame(void *userdata, const struct go_step *step)
{
	return step->depth > 0;
}

/*
 * Adds an unwind row for the byte before a function to which signal handlers return. Stack walks
 * look up the byte before each return address, and here that byte is not in the function.
 */
static int signal_add(struct unwind_compiler *compiler, const struct go_function *function)
{
	static const struct unwind_frame frame = { .kind = UNWIND_SIGNAL };
	int r = unwind_compiler_begin(compiler, function->start - 1, function->start);

	if (r)
		return r;
	r = unwind_compiler_row(compiler, function->start - 1, &frame);
	unwind_compiler_end(compiler);
	return r;
}

static int function_add(struct adding *adding, const struct go_pclntab *go,
			const struct go_function *function, uint64_t *budget)
{
	int r = 0;

	adding->saved = NOWHERE;
	adding->has_frame = adding->is_moved = false;
	if (adding->way == WAY_SIGNAL)
		r = signal_add(adding->compiler, function);
	/*
	 * The row of the first step depends on whether a later step in Go's table moves sp, so look
	 * at all steps first.
	 */
	if (!r && adding->way == WAY_SWITCH)
		adding->has_frame = go_pclntab_steps(go, function, budget, on_frame, NULL) == 1;
	if (!r)
		r = unwind_compiler_begin(adding->compiler, function->start, function->end);
	if (r)
		return r == -ERANGE ? 0 : r;
	r = go_pclntab_steps(go, function, budget, on_step, adding);
	if (!r) {
		unwind_compiler_end(adding->compiler);
	} else {
		/* Drop the function's rows that were read before the error, because they may be
		 * wrong, too. */
		unwind_compiler_cancel(adding->compiler);
	}
	return r == -EBADMSG ? 0 : r;
}

int compile_go(struct unwind_compiler *compiler, const struct elf_source *source,
	       const struct elf_file *file, const struct go_pclntab *go, uint64_t entry)
{
	uint64_t budget = (uint64_t)go->size * STEPS_FACTOR + STEPS_SPARE;
	struct adding adding = { .compiler = compiler };
	int r = 0;

	adding.code = calloc(1, sizeof(*adding.code));
	if (!adding.code)
		return -ENOMEM;
	adding.code->source = source;
	adding.code->file = file;
	for (uint64_t i = 0; i < go->n_functions && !r; i++) {
		struct go_function function;

		if (!go_pclntab_function(go, i, &function) || !function.steps)
			continue;
		adding.way = way_of(&function, entry);
		r = function_add(&adding, go, &function, &budget);
	}
	free(adding.code);
	return r;
}

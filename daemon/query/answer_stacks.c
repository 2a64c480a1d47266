/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/answer_stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base.h"
#include "daemon/query/function_search.h"
#include "daemon/store/reader.h"
#include "daemon/window/stack_id.h"

static const char *const frame_kinds[] = {
	[FRAME_NATIVE] = "native",	     [FRAME_KERNEL] = "kernel", [FRAME_JIT] = "jit",
	[FRAME_INTERPRETED] = "interpreted", [FRAME_PSEUDO] = "pseudo",
};

static const struct {
	unsigned int flag;
	const char *name;
} stack_flag_names[] = {
	{ STACK_IS_TRUNCATED, "truncated" }, { STACK_IS_FRAME_POINTERS, "frame_pointers" },
	{ STACK_IS_LOST, "lost" },	     { STACK_IS_AMBIGUOUS, "ambiguous" },
	{ STACK_IS_FAULT, "fault" },	     { STACK_IS_NEW_THREAD, "new_thread" },
	{ STACK_IS_NO_HOOK, "no_hook" },     { STACK_IS_UNREAD, "unread" },
	{ STACK_IS_NO_TABLE, "no_table" },   { STACK_IS_NO_MAPPING, "no_mapping" },
	{ STACK_IS_NO_ROW, "no_row" },	     { STACK_IS_SHED, "shed" },
	{ STACK_IS_COMPAT, "compat" },
};

const char *answer_stack_flag(size_t i)
{
	return i < ARRAY_SIZE(stack_flag_names) ? stack_flag_names[i].name : NULL;
}

static int stack_flags_wire(struct arena *arena, unsigned int flags, struct wire_strs *out)
{
	const char **names = arena_array(arena, ARRAY_SIZE(stack_flag_names), sizeof(*names));
	size_t i, n = 0;

	if (!names)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(stack_flag_names); i++)
		if (flags & stack_flag_names[i].flag)
			names[n++] = stack_flag_names[i].name;
	*out = (struct wire_strs){ .v = names, .n = n };
	return 0;
}

/*
 * Returns the offset of a frame in its function, or in its file if the function is unknown. If the
 * file is unknown, too, returns WIRE_ABSENT: the address may then be any number, because a walk by
 * frame pointers may have followed a wrong pointer.
 */
static int64_t frame_offset(const struct answer_stacks *stacks, const struct frame *frame)
{
	uint64_t offset = frame->name ? frame->name_offset : frame->file_offset;

	if (frame->kind == FRAME_PSEUDO || offset >= INT64_MAX)
		return WIRE_ABSENT;
	if (!frame->name &&
	    (!frame->module || (frame->kind == FRAME_KERNEL && !stacks->options->kernel_addresses)))
		return WIRE_ABSENT;
	return (int64_t)offset;
}

/* Returns the build-id of a file as text, which neighbouring frames of the file share. */
static const char *build_id_text(struct answer_stacks *stacks, const struct code_file *file)
{
	char *text;

	if (stacks->code == file)
		return stacks->build_id;
	text = arena_alloc(stacks->arena, 2 * file->build_id_size + 1);
	if (!text)
		return NULL;
	for (size_t i = 0; i < file->build_id_size; i++)
		snprintf(text + 2 * i, 3, "%02x", file->build_id[i]);
	stacks->code = file;
	stacks->build_id = text;
	return text;
}

/*
 * Sets which file a frame is in, and where: the file's build-id, the offset in the file and the
 * address. Returns 0 or -ENOMEM.
 */
static int frame_place(struct answer_stacks *stacks, const struct frame *frame,
		       struct wire_frame *out)
{
	uint64_t offset;

	out->file_offset = out->file_address = WIRE_ABSENT;
	if (!stacks->options->build_ids || !frame->code || frame->file_offset > INT64_MAX)
		return 0;
	out->build_id = build_id_text(stacks, frame->code);
	if (!out->build_id)
		return -ENOMEM;
	out->file_address = (int64_t)frame->file_offset;
	if (code_file_offset(frame->code, frame->file_offset, &offset) && offset <= INT64_MAX)
		out->file_offset = (int64_t)offset;
	return 0;
}

/*
 * Translates the frames of a stack. If two different stacks have the same id, *out is a single
 * frame that says so.
 */
static int stack_frames_wire(struct answer_stacks *stacks, const struct stack *stack,
			     struct wire_frames *out)
{
	static const struct wire_frame ambiguous = {
		.kind = "pseudo",
		.name = "[two stacks with one id]",
		.offset = WIRE_ABSENT,
		.file_offset = WIRE_ABSENT,
		.file_address = WIRE_ABSENT,
	};
	struct wire_frame *frames =
		arena_array(stacks->arena, stack->n_frames + 1, sizeof(*frames));
	bool has_address = stack->ip && !stack->is_merged &&
			   (stack->process || stacks->options->kernel_addresses);
	size_t i, skipped = stack->n_raw > stack->n_frames ? stack->n_raw - stack->n_frames : 0;

	if (!frames)
		return -ENOMEM;
	if (stack->flags & STACK_IS_AMBIGUOUS) {
		*out = (struct wire_frames){ .v = &ambiguous, .n = 1 };
		return 0;
	}
	for (i = 0; i < stack->n_frames; i++) {
		const struct frame *frame = stack->frames[i];

		frames[i] = (struct wire_frame){
			.kind = frame_kinds[frame->kind],
			.name = frame->name,
			.offset = frame_offset(stacks, frame),
			.module = frame->module,
		};
		if (frame_place(stacks, frame, &frames[i]))
			return -ENOMEM;
		if (has_address)
			frames[i].address =
				arena_printf(stacks->arena, "0x%" PRIx64, stack->ip[i + skipped]);
	}
	*out = (struct wire_frames){ .v = frames, .n = stack->n_frames };
	return 0;
}

/*
 * Returns how many frames at the leaf of a stack with all of its frames are functions of the
 * scheduler, which are no part of its place_id; WIRE_ABSENT if there are none.
 */
static int64_t scheduler_frames(const struct stack *stack)
{
	if (stack->place_id == stack->id)
		return WIRE_ABSENT;
	for (size_t i = 1; i < stack->n_frames; i++)
		if (stack_id_of(stack->frames + i, stack->n_frames - i) == stack->place_id)
			return (int64_t)i;
	return WIRE_ABSENT;
}

int answer_stack(struct answer_stacks *stacks, struct stack *stack, const struct wire_stack **out)
{
	struct answer_stack_entry *entry;
	int r;

	if (!stack)
		return 0;
	HASH_FIND_PTR(stacks->entries, &stack, entry);
	if (entry) {
		*out = &entry->wire;
		return 0;
	}
	r = store_reader_fill(stacks->reader, stack);
	if (r)
		return r;
	entry = arena_alloc(stacks->arena, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->stack = stack;
	entry->wire.id = arena_printf(stacks->arena, "0x%" PRIx64, stack->id);
	entry->wire.scheduler = scheduler_frames(stack);
	r = stack_flags_wire(stacks->arena, stack->flags, &entry->wire.flags);
	if (r)
		return -ENOMEM;
	r = stack_frames_wire(stacks, stack, &entry->wire.frames);
	if (r || !entry->wire.id)
		return -ENOMEM;
	/*
	 * If HASH_ADD_PTR runs out of memory, the table does not get the entry: the stack is then
	 * translated again when it is needed again.
	 */
	HASH_ADD_PTR(stacks->entries, stack, entry);
	*out = &entry->wire;
	return 0;
}

int answer_callers(struct answer_stacks *stacks, struct stack *stack, uint32_t from,
		   const struct wire_stack **out)
{
	const struct wire_stack *whole = NULL;
	struct wire_stack *wire;
	int r = answer_stack(stacks, stack, &whole);

	if (r || !whole || !from || from >= whole->frames.n) {
		*out = whole;
		return r;
	}
	wire = arena_alloc(stacks->arena, sizeof(*wire));
	if (!wire)
		return -ENOMEM;
	*wire = *whole;
	wire->frames.v += from;
	wire->frames.n -= from;
	wire->scheduler = WIRE_ABSENT;
	wire->id = arena_printf(stacks->arena, "0x%" PRIx64, function_callers_id(stack, from));
	if (!wire->id)
		return -ENOMEM;
	*out = wire;
	return 0;
}

/* Returns the frame that stands for waits below a length: "[waits under 204.8ms]". */
static char *short_name(struct arena *arena, int64_t below_ns)
{
	if (below_ns % NS_PER_MS && below_ns > NS_PER_MS)
		return arena_printf(arena, "[waits under %.1fms]",
				    (double)below_ns / (double)NS_PER_MS);
	if (below_ns >= NS_PER_MS)
		return arena_printf(arena, "[waits under %" PRId64 "ms]", below_ns / NS_PER_MS);
	return arena_printf(arena, "[waits under %" PRId64 "us]", below_ns / NS_PER_US);
}

int answer_short_stack(struct answer_stacks *stacks, const struct wire_stack **out)
{
	struct wire_stack *stack = arena_alloc(stacks->arena, sizeof(*stack));
	struct wire_frame *frame = arena_alloc(stacks->arena, sizeof(*frame));

	if (!stack || !frame)
		return -ENOMEM;
	*frame = wire_frame_absent();
	frame->kind = "pseudo";
	frame->name = short_name(stacks->arena, stacks->options->short_below_ns);
	stack->id = "0x0";
	stack->scheduler = WIRE_ABSENT;
	stack->frames = (struct wire_frames){ .v = frame, .n = 1 };
	*out = stack;
	return frame->name ? 0 : -ENOMEM;
}

void answer_stacks_fini(struct answer_stacks *stacks)
{
	HASH_CLEAR(hh, stacks->entries);
	stacks->code = NULL;
}

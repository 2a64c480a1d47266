/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/query/answer_stacks.h"
#include "daemon/query/notes.h"
#include "daemon/session/recorder.h"
#include "daemon/symbol/source_lines.h"

/*
 * True if the frame is the function to which a signal handler returns. The signal interrupted the
 * function of the next frame, so the address of that frame is not a return address.
 */
static bool is_trampoline(const struct frame *frame)
{
	static const char *const names[] = { "__restore_rt", "__kernel_rt_sigreturn" };

	for (size_t i = 0; frame->name && i < ARRAY_SIZE(names); i++)
		if (strcmp(frame->name, names[i]) == 0)
			return true;
	return false;
}

/*
 * Finds the offset in the file at which to look up the source line of a frame. A return address
 * points behind the call instruction, so 1 is subtracted to get an address inside the instruction.
 * Returns false if the frame belongs to no file.
 */
static bool frame_file_offset(const struct stack *stack, size_t i, uint64_t *offset_out)
{
	const struct frame *frame = stack->frames[i];
	bool is_call = i > 0 && !is_trampoline(stack->frames[i - 1]);

	if (frame->kind != FRAME_NATIVE || !frame->file_id || !frame->module ||
	    frame->module[0] != '/' || (stack->flags & STACK_IS_AMBIGUOUS))
		return false;
	*offset_out = frame->file_offset - is_call;
	return true;
}

static int stack_lines_add(struct source_lines *lines, const struct stack *stack)
{
	uint64_t offset;
	size_t i;
	int r = 0;

	for (i = 0; i < stack->n_frames && !r; i++)
		if (frame_file_offset(stack, i, &offset))
			r = source_lines_add(lines, stack->frames[i]->file_id,
					     stack->frames[i]->module, offset);
	return r;
}

static int source_make(struct arena *arena, const struct source_frame *line, bool is_inlined,
		       const struct wire_source **out)
{
	struct wire_source *source = arena_alloc(arena, sizeof(*source));

	if (!source)
		return -ENOMEM;
	source->file = line->file;
	source->line = line->line ? (int64_t)line->line : WIRE_ABSENT;
	source->inlined = is_inlined;
	*out = source;
	return 0;
}

/*
 * Expands one frame to n frames: first the functions that were inlined into it, then the frame
 * itself.
 */
static int frame_expand(struct arena *arena, const struct wire_frame *frame,
			const struct source_frame *line, size_t n, struct wire_frame *out)
{
	size_t i;
	int r = 0;

	for (i = 0; i < n && !r; i++) {
		out[i] = *frame;
		if (i + 1 < n) {
			out[i].name = line[i].name;
			out[i].offset = WIRE_ABSENT;
		}
		r = source_make(arena, &line[i], i + 1 < n, &out[i].source);
	}
	return r;
}

static const struct source_frame *frame_lines(const struct source_lines *lines,
					      const struct stack *stack, size_t i, size_t *n_out)
{
	uint64_t offset;

	*n_out = 0;
	return frame_file_offset(stack, i, &offset)
		       ? source_lines_find(lines, stack->frames[i]->file_id,
					   stack->frames[i]->module, offset, n_out)
		       : NULL;
}

static int stack_expand(struct arena *arena, const struct source_lines *lines,
			struct answer_stack_entry *entry)
{
	const struct wire_frames frames = entry->wire.frames;
	const struct source_frame *line;
	size_t i, n, total = 0;
	struct wire_frame *out;
	int r = 0;

	if (frames.n != entry->stack->n_frames)
		return 0;
	for (i = 0; i < frames.n; i++)
		total += frame_lines(lines, entry->stack, i, &n) ? n : 1;
	out = arena_array(arena, total + 1, sizeof(*out));
	if (!out)
		return -ENOMEM;
	for (i = total = 0; i < frames.n && !r; i++) {
		line = frame_lines(lines, entry->stack, i, &n);
		if (!line) {
			out[total++] = frames.v[i];
			continue;
		}
		r = frame_expand(arena, &frames.v[i], line, n, &out[total]);
		total += n;
	}
	entry->wire.frames = (struct wire_frames){ .v = out, .n = total };
	return r;
}

static int open_file(void *userdata, uint64_t file_id, const char *path, int fd_min, int *fd_out,
		     int *debug_fd_out)
{
	return process_table_open_file(userdata, file_id, path, fd_min, fd_out, debug_fd_out);
}

/* Looks up the source lines of all user stacks, and adds them to the stacks and to the notes. */
static int lines_add(struct recorder *recorder, struct answer *answer, struct answer_stacks *stacks,
		     struct source_lines *lines)
{
	struct answer_stack_entry *entry, *next;
	const char *notes[SOURCE_LINES_NOTES_MAX];
	size_t n_notes;
	int r;

	HASH_ITER (hh, stacks->entries, entry, next) {
		if (!entry->stack->is_user)
			continue;
		r = stack_lines_add(lines, entry->stack);
		if (r)
			return r;
	}
	r = source_lines_run(lines, recorder->lines);
	if (r)
		return r;
	HASH_ITER (hh, stacks->entries, entry, next) {
		if (!entry->stack->is_user)
			continue;
		r = stack_expand(answer->arena, lines, entry);
		if (r)
			return r;
	}
	r = source_lines_notes(lines, notes, &n_notes);
	if (r)
		return r;
	return notes_append(answer->arena, &answer->reply.snapshot.notes, notes, n_notes);
}

int answer_lines(struct recorder *recorder, struct answer *answer, struct answer_stacks *stacks)
{
	struct source_lines *lines;
	const struct source_lines_opener opener = { open_file, recorder->processes };
	int r = source_lines_new(answer->arena, &opener, &lines);

	if (r)
		return r;
	r = lines_add(recorder, answer, stacks, lines);
	source_lines_free(lines);
	return r;
}

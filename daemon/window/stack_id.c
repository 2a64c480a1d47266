/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/stack_id.h"

#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/base/hash.h"

static uint64_t mix(uint64_t h, const uint64_t *words, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		h = (h ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return h;
}

static uint64_t id_of_hash(uint64_t h)
{
	return h < STACK_ID_FIRST ? h + STACK_ID_FIRST : h;
}

uint64_t stack_id_of(struct frame *const *frames, size_t n)
{
	uint64_t h = UINT64_C(0x5374616b64000001);
	size_t i;

	for (i = 0; i < n; i++) {
		uint64_t words[] = { frames[i]->kind, frames[i]->file_id, frames[i]->file_offset };

		h = mix(h, words, ARRAY_SIZE(words));
	}
	return id_of_hash(h);
}

/*
 * Returns the file offset at which the frame's function starts. For a pseudo frame, which is no
 * code, returns a hash of its name.
 */
static uint64_t function_start(const struct frame *frame)
{
	if (frame->kind == FRAME_PSEUDO)
		return frame->name ? hash64_string(HASH64_SEED, frame->name) : 0;
	return frame->file_offset - (frame->name ? frame->name_offset : 0);
}

struct stack_function stack_function_of(const struct frame *frame)
{
	return (struct stack_function){
		.kind = frame->kind,
		.file_id = frame->file_id,
		.start = function_start(frame),
	};
}

uint64_t stack_functions_begin(void)
{
	return UINT64_C(0x5374616b64000002);
}

uint64_t stack_functions_add(uint64_t state, const struct stack_function *function)
{
	uint64_t words[] = { function->kind, function->file_id, function->start };

	return mix(state, words, ARRAY_SIZE(words));
}

uint64_t stack_functions_end(uint64_t state)
{
	return id_of_hash(state);
}

uint64_t stack_functions_id_of(struct frame *const *frames, size_t n)
{
	uint64_t state = stack_functions_begin();
	struct stack_function function;
	size_t i;

	for (i = 0; i < n; i++) {
		function = stack_function_of(frames[i]);
		state = stack_functions_add(state, &function);
	}
	return stack_functions_end(state);
}

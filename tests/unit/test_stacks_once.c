/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/arena.h"
#include "common/base.h"
#include "proto/stacks_once.h"

/* A call: what was sent, and what the other side knows. */
struct call {
	struct stacks_sent *sent;
	struct stacks_kept *kept;
	struct arena *arena;
};

static int call_begin(void **state)
{
	struct call *call = calloc(1, sizeof(*call));

	if (!call)
		return -1;
	call->arena = arena_new();
	call->sent = stacks_sent_new();
	call->kept = stacks_kept_new(call->arena);
	*state = call;
	return call->arena && call->sent && call->kept ? 0 : -1;
}

static int call_end(void **state)
{
	struct call *call = *state;

	stacks_sent_free(call->sent);
	stacks_kept_free(call->kept);
	arena_free(call->arena);
	free(call);
	return 0;
}

static struct wire_frame frame(const char *name)
{
	struct wire_frame frame = wire_frame_absent();

	frame.kind = "native";
	frame.name = name;
	frame.module = "/bin/program";
	return frame;
}

/* Sends a stack as the kernel or the user stack of a row. Returns how many frames were sent. */
static size_t send(struct call *call, const struct wire_stack *stack, bool is_kernel)
{
	struct wire_row row = wire_row_absent();
	const struct wire_stack *got;
	struct short_row brief;
	struct wire_rows rows;
	size_t n;

	*(is_kernel ? &row.kernel : &row.user) = stack;
	stacks_sent_shorten(call->sent, &row, &brief);
	n = (is_kernel ? brief.row.kernel : brief.row.user)->frames.n;
	stacks_sent_note(call->sent, &brief.row);
	rows = (struct wire_rows){ .v = &brief.row, .n = 1 };
	assert_int_equal(stacks_kept_fill(call->kept, call->arena, &rows), 0);
	got = is_kernel ? rows.v[0].kernel : rows.v[0].user;
	assert_string_equal(got->id, stack->id);
	assert_int_equal(got->frames.n, stack->frames.n);
	for (size_t i = 0; i < stack->frames.n; i++)
		assert_string_equal(got->frames.v[i].name, stack->frames.v[i].name);
	assert_int_equal(got->flags.n, stack->flags.n);
	return n;
}

static void test_sent_once(void **state)
{
	const struct wire_frame frames[] = { frame("inner"), frame("outer") };
	const char *flag = "truncated";
	struct wire_stack stack = wire_stack_absent();

	stack.id = "0x10";
	stack.frames = (struct wire_frames){ frames, 2 };
	stack.flags = (struct wire_strs){ &flag, 1 };
	assert_int_equal(send(*state, &stack, false), 2);
	assert_int_equal(send(*state, &stack, false), 0);
	assert_int_equal(send(*state, &stack, true), 0);
}

/* A later window may have found another name, or another flag. */
static void test_changed_is_sent_again(void **state)
{
	struct wire_frame frames[] = { frame("inner"), frame("") };
	const char *flag = "lost";
	struct wire_stack stack = wire_stack_absent();

	stack.id = "0x10";
	stack.frames = (struct wire_frames){ frames, 2 };
	assert_int_equal(send(*state, &stack, false), 2);
	frames[1].name = "outer";
	assert_int_equal(send(*state, &stack, false), 2);
	assert_int_equal(send(*state, &stack, false), 0);
	stack.flags = (struct wire_strs){ &flag, 1 };
	assert_int_equal(send(*state, &stack, false), 2);
	stack.frames.n = 1;
	assert_int_equal(send(*state, &stack, false), 1);
	assert_int_equal(send(*state, &stack, false), 0);
}

/* Sends a stack of one frame with this id. Returns how many frames were sent. */
static size_t send_number(struct call *call, int number)
{
	char id[32], name[32];
	struct wire_frame one = frame(name);
	struct wire_stack stack = wire_stack_absent();

	snprintf(id, sizeof(id), "0x%x", number);
	snprintf(name, sizeof(name), "function_%d", number);
	stack.id = id;
	stack.frames = (struct wire_frames){ &one, 1 };
	return send(call, &stack, false);
}

/* A stack whose place another one took is sent whole again. */
static void test_more_than_places(void **state)
{
	enum { STACKS = 40000 };
	size_t n = 0;

	assert_int_equal(send_number(*state, 1), 1);
	assert_int_equal(send_number(*state, 2), 1);
	assert_int_equal(send_number(*state, 1 + (1 << 14)), 1);
	assert_int_equal(send_number(*state, 1), 1);
	assert_int_equal(send_number(*state, 2), 0);
	for (int turn = 0; turn < 2; turn++)
		for (int i = 1; i <= STACKS; i++)
			n += send_number(*state, i);
	assert_in_range(n, STACKS + 1, 2 * STACKS);
}

/* A stack of which nothing is known but that it was cut is no brief one. */
static void test_flags_alone(void **state)
{
	const char *flag = "truncated";
	struct wire_stack stack = wire_stack_absent();

	stack.id = "0x20";
	stack.flags = (struct wire_strs){ &flag, 1 };
	assert_int_equal(send(*state, &stack, false), 0);
	assert_int_equal(send(*state, &stack, false), 0);
}

/* The id 0 is that of many pseudo stacks. */
static void test_no_stack_is_whole(void **state)
{
	const struct wire_frame one = frame("[not known]"), other = frame("[lost]");
	struct wire_stack stack = wire_stack_absent();

	stack.id = "0x0";
	stack.frames = (struct wire_frames){ &one, 1 };
	assert_int_equal(send(*state, &stack, false), 1);
	assert_int_equal(send(*state, &stack, false), 1);
	stack.frames.v = &other;
	assert_int_equal(send(*state, &stack, false), 1);
}

static void test_unknown_is_refused(void **state)
{
	struct call *call = *state;
	struct wire_stack stack = wire_stack_absent();
	struct wire_row row = wire_row_absent();
	struct wire_rows rows = { &row, 1 };

	stack.id = "0x10";
	row.user = &stack;
	assert_int_equal(stacks_kept_fill(call->kept, call->arena, &rows), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sent_once, call_begin, call_end),
		cmocka_unit_test_setup_teardown(test_changed_is_sent_again, call_begin, call_end),
		cmocka_unit_test_setup_teardown(test_more_than_places, call_begin, call_end),
		cmocka_unit_test_setup_teardown(test_flags_alone, call_begin, call_end),
		cmocka_unit_test_setup_teardown(test_no_stack_is_whole, call_begin, call_end),
		cmocka_unit_test_setup_teardown(test_unknown_is_refused, call_begin, call_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/named.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/debuginfod/names.h"
#include "client/option/options.h"
#include "common/array.h"
#include "common/base.h"
#include "common/own_function.h"
#include "proto/codec.h"

/* A reply that waits until its functions have names. */
struct kept {
	struct arena *arena;
	struct wire_snapshot_reply reply;
};

/* The replies of a call, in the order in which they came. */
struct replies {
	struct kept *v;
	size_t n, capacity;
	struct names *names;
};

/* The value of --debuginfod-timeout where it is not given. */
#define TIMEOUT_DEFAULT_NS (30 * NS_PER_S)

/* How long all calls of this command have fetched so far. */
static int64_t spent_ns;

/*
 * True if the address of the frame is that of the instruction after a call. It is not if a signal
 * interrupted the function: the frame before is then the one to which the signal handler returns.
 */
static bool is_after_call(const struct wire_stack *stack, size_t i)
{
	const char *name = i > 0 ? stack->frames.v[i - 1].name : NULL;

	return i > 0 && !(name && (strcmp(name, "__restore_rt") == 0 ||
				   strcmp(name, "__kernel_rt_sigreturn") == 0));
}

static bool is_wanted(const struct wire_frame *frame)
{
	return frame->build_id && frame->file_address != WIRE_ABSENT && frame->file_address > 0 &&
	       function_is_nameless(frame->name);
}

/* Returns an address in the frame's function: that of the call, not the one behind it. */
static uint64_t address_in(const struct wire_stack *stack, size_t i)
{
	return (uint64_t)stack->frames.v[i].file_address - is_after_call(stack, i);
}

/* Notes which frames of a stack have no name. */
static void stack_note(struct names *names, const struct wire_stack *stack)
{
	for (size_t i = 0; stack && i < stack->frames.n; i++)
		if (is_wanted(&stack->frames.v[i]))
			names_want(names, stack->frames.v[i].build_id, stack->frames.v[i].module,
				   address_in(stack, i));
}

/* Names the frames of a stack. The decoder made the stack for this row alone. */
static void stack_name(struct names *names, const struct wire_stack *stack)
{
	for (size_t i = stack ? stack->frames.n : 0; i-- > 0;) {
		struct wire_frame *frame = (struct wire_frame *)&stack->frames.v[i];
		const char *name;
		uint64_t start;

		if (!is_wanted(frame))
			continue;
		name = names_find(names, frame->build_id, address_in(stack, i), &start);
		if (!name)
			continue;
		frame->name = name;
		frame->offset = frame->file_address - (int64_t)start;
	}
}

static void reply_each(struct names *names, const struct wire_snapshot_reply *reply,
		       void (*each)(struct names *names, const struct wire_stack *stack))
{
	for (size_t i = 0; i < reply->rows.n; i++) {
		const struct wire_row *row = &reply->rows.v[i];

		each(names, row->user);
		if (row->waker)
			each(names, row->waker->user);
	}
}

/* Keeps a reply. To be used as a reply_handler. */
static int replies_add(const struct varlink_message *message, void *context)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	struct replies *replies = context;
	struct wire_snapshot_reply reply;
	int r = snapshot_reply_decode(message, arena, &reply, NULL);

	if (r < 0)
		return r;
	r = array_reserve(replies->v, replies->capacity, replies->n + 1);
	if (r < 0)
		return r;
	reply_each(replies->names, &reply, stack_note);
	replies->v[replies->n++] = (struct kept){ TAKE(arena), reply };
	return 0;
}

/* Passes a reply to the handler, as the message that it would have been with these names. */
static int reply_pass(const struct wire_snapshot_reply *reply, bool is_last, reply_handler handler,
		      void *context)
{
	_cleanup_(varlink_message_freep) struct varlink_message *message = NULL;
	_cleanup_(text_fini) struct text text = {};
	int r;

	text_init(&text, SIZE_MAX);
	r = snapshot_reply_encode(reply, is_last ? 0 : VARLINK_CONTINUES, &text);
	if (r < 0)
		return r;
	r = varlink_reply_parse(text.data, text.len - 1, &message);
	return r < 0 ? r : handler(message, context);
}

static enum exit_code replies_pass(struct replies *replies, reply_handler handler, void *context)
{
	for (size_t i = 0; i < replies->n; i++) {
		int r;

		reply_each(replies->names, &replies->v[i].reply, stack_name);
		r = reply_pass(&replies->v[i].reply, i + 1 == replies->n, handler, context);
		replies->v[i].arena = arena_free(replies->v[i].arena);
		if (r < 0 && r != -EIO)
			print_message("the answer cannot be printed: %s", strerror(-r));
		if (r < 0)
			return EXIT_CODE_IO;
	}
	return EXIT_CODE_OK;
}

enum exit_code call_check_names(const struct options *options)
{
	const char *why = options->debuginfod ? names_check() : NULL;

	if (!why)
		return EXIT_CODE_OK;
	print_message("%s", why);
	return EXIT_CODE_USAGE;
}

enum exit_code call_run_named(const struct options *options, const struct text *request,
			      reply_handler handler, void *context, struct call_error *error)
{
	int64_t timeout_ns =
		options->debuginfod_ns != WIRE_ABSENT ? options->debuginfod_ns : TIMEOUT_DEFAULT_NS;
	struct replies replies = { 0 };
	enum exit_code code;

	if (!options->debuginfod)
		return call_try(options, request, handler, context, error);
	replies.names = names_new();
	code = call_try(options, request, replies_add, &replies, error);
	if (code == EXIT_CODE_OK) {
		spent_ns += names_fetch(replies.names, timeout_ns - spent_ns);
		code = replies_pass(&replies, handler, context);
	}
	for (size_t i = 0; i < replies.n; i++)
		arena_free(replies.v[i].arena);
	free(replies.v);
	names_free(replies.names);
	return code;
}

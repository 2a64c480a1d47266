/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/namer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "common/own_function.h"
#include "daemon/process/process.h"
#include "daemon/window/frame_cache.h"
#include "daemon/window/generated.h"
#include "daemon/window/idle_stack.h"
#include "daemon/window/reason_find.h"
#include "daemon/window/stack.h"
#include "daemon/window/stack_id.h"
#include "daemon/window/window.h"

/*
 * Frames of BPF programs and of their callers are at the leaf of a stack. Only this many frames,
 * counted from the leaf, are searched for them.
 */
enum { MAX_TRACER_FRAMES = 16 };

/*
 * CPU time that naming stacks again may take for each window, some 4000 stacks: 1 % of a CPU at the
 * default length. Stacks that are not reached keep their names in this window; those of which an
 * address has no name come first.
 */
#define RENEW_NS (50 * NS_PER_MS)

static bool is_schedule(const struct symbol *symbol)
{
	return symbol->name && strncmp(symbol->name, "__schedule", 10) == 0 &&
	       (symbol->name[10] == '\0' || symbol->name[10] == '.');
}

static bool is_tracer(const struct symbol *symbol)
{
	static const char *const prefixes[] = { "bpf_prog_", "bpf_trace_run", "__bpf_trace_",
						"__traceiter_" };
	size_t i;

	for (i = 0; symbol->name && i < ARRAY_SIZE(prefixes); i++)
		if (strncmp(symbol->name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/*
 * Handles the stack of a thread that woke another one. At the leaf, such a stack has frames of BPF
 * programs, and the next frame is that of try_to_wake_up: sets *first_out to the index of this
 * frame. False if this is another kind of stack.
 */
static bool waker_first_frame(const struct symbol *symbols, size_t n, size_t *first_out)
{
	size_t i, first = 0;

	for (i = 0; i < n && i < MAX_TRACER_FRAMES; i++)
		if (is_tracer(&symbols[i]))
			first = i + 1;
	if (!first || first == n || !symbols[first].name ||
	    strncmp(symbols[first].name, "try_to_wake_up", 14) != 0)
		return false;
	*first_out = first;
	return true;
}

/*
 * Handles a stack that was taken at a tracepoint "x". From the leaf on, such a stack has the frame
 * of __traceiter_x, frames of BPF programs, and the frame of the function that contains the
 * tracepoint. Puts one frame named "tracepoint:x" in place of all frames before that function,
 * writes this name to `name` (size bytes), and sets *first_out to the index of the frame. A frame
 * without a name between frames of BPF programs is one of them, too: its program was loaded after
 * the symbols had been read. False if this is another kind of stack.
 */
static bool tracepoint_first_frame(struct symbol *symbols, size_t n, size_t *first_out, char *name,
				   size_t size)
{
	static const char prefix[] = "__traceiter_";
	const char *leaf = n ? symbols[0].name : NULL;
	size_t i, first = 1;

	if (!leaf || strncmp(leaf, prefix, strlen(prefix)) != 0 || symbols[0].name_offset)
		return false;
	for (i = 1; i < n && i < MAX_TRACER_FRAMES; i++) {
		if (is_tracer(&symbols[i]))
			first = i + 1;
		else if (symbols[i].name)
			break;
	}
	snprintf(name, size, "tracepoint:%s", leaf + strlen(prefix));
	symbols[first - 1] = symbols[0];
	symbols[first - 1].name = name;
	*first_out = first - 1;
	return true;
}

/*
 * Finds the frames of tracing code at the leaf of a kernel stack, and sets *first_out to the index
 * of the first frame after them. For a thread that was switched out, this is the frame of
 * __schedule. Sets the offset within __schedule to 0: it depends on the hook that took the stack,
 * but stacks taken by different hooks should be equal.
 */
static void kernel_first_frame(struct symbol *symbols, size_t n, size_t *first_out, char *name,
			       size_t size)
{
	size_t i;

	*first_out = 0;
	if (tracepoint_first_frame(symbols, n, first_out, name, size))
		return;
	if (waker_first_frame(symbols, n, first_out))
		return;
	for (i = 0; i < n && i < MAX_TRACER_FRAMES; i++) {
		if (!is_schedule(&symbols[i]))
			continue;
		symbols[i].file_offset -= symbols[i].name_offset;
		symbols[i].name_offset = 0;
		*first_out = i;
		return;
	}
}

/*
 * True if a kernel stack is that of a thread that waits to be thawed. In kernels that have
 * do_freezer_trap() inlined, the leaf is get_signal(), whose other waits are in functions of their
 * own.
 */
static bool stack_is_frozen(const struct stack *stack, size_t leaf)
{
	if (stack->process || stack->is_sample)
		return false;
	for (size_t i = 0; i < stack->n_frames; i++)
		if (function_is(stack->frames[i]->name, "do_freezer_trap") ||
		    function_is(stack->frames[i]->name, "__refrigerator"))
			return true;
	return leaf < stack->n_frames && function_is(stack->frames[leaf]->name, "get_signal");
}

/*
 * Returns how many frames of a kernel stack, counted from the leaf, are functions of the scheduler.
 * If all of them are, does not count the last one. 0 for user stacks, and for stacks of running
 * threads, which end in what the thread ran.
 */
static size_t sched_frames(const struct namer *namer, const struct stack *stack)
{
	const uint64_t *ip = stack->ip + (stack->n_raw - stack->n_frames);
	size_t i = 0;

	if (stack->is_sample)
		return 0;
	while (!stack->process && i + 1 < stack->n_frames && ip[i] > namer->kernel.sched_start &&
	       ip[i] < namer->kernel.sched_end)
		i++;
	return i;
}

static void stack_finish(struct namer *namer, struct stack *stack)
{
	size_t skip = sched_frames(namer, stack);

	stack->id = stack_id_of(stack->frames, stack->n_frames);
	stack->place_id = stack_id_of(stack->frames + skip, stack->n_frames - skip);
	stack->functions_id = stack_functions_id_of(stack->frames, stack->n_frames);
	/*
	 * A kernel stack that fills the buffer may have lost frames. User stacks have the flag
	 * already.
	 */
	if (!stack->process && stack->n_raw >= STACK_DEPTH)
		stack->flags |= STACK_IS_TRUNCATED;
	stack->is_idle = idle_stack(namer->idle_functions, stack);
	if (stack_is_frozen(stack, skip))
		stack->flags |= STACK_IS_FROZEN;
	if (stack->process && reason_is_of_program(stack))
		stack->flags |= STACK_IS_OF_PROGRAM;
	stack->is_resolved = true;
}

/* Finds the symbol of an address in a process. If its file's symbols are not loaded, loads them. */
static enum process_miss loaded_lookup(const struct namer *namer, struct stack *stack, uint64_t ip,
				       bool is_call, struct symbol *out)
{
	enum process_miss miss = process_lookup(stack->process, stack->mappings, ip, is_call, out);

	if (miss != PROCESS_MISS_SYMBOLS)
		return miss;
	process_refresh(stack->process, stack->mappings, miss, namer->until_ns);
	miss = process_lookup(stack->process, stack->mappings, ip, is_call, out);
	stack->lacks_symbols |= miss == PROCESS_MISS_SYMBOLS;
	return miss;
}

/*
 * Finds the symbol of an address in a process. If the address is in no known mapping, updates the
 * process's mappings and looks again. If it is in code made at run time (JIT), reads again the list
 * of names that the process itself writes, and looks again; does this twice, because the process
 * may just be writing the name. May block: call on the resolver's thread only. If is_again is true,
 * nothing else is read: the address was looked up before, and what changed since has been read.
 */
static void user_lookup(const struct namer *namer, struct stack *stack, uint64_t ip, bool is_call,
			bool is_again, struct symbol *out)
{
	enum process_miss miss = loaded_lookup(namer, stack, ip, is_call, out);

	if (is_again)
		return;
	if (miss == PROCESS_MISS_MAPPING) {
		process_refresh(stack->process, stack->mappings, miss, namer->until_ns);
		miss = loaded_lookup(namer, stack, ip, is_call, out);
	}
	for (int i = 0; i < 2 && miss == PROCESS_MISS_JIT; i++) {
		process_refresh(stack->process, stack->mappings, miss, namer->until_ns);
		miss = loaded_lookup(namer, stack, ip, is_call, out);
	}
}

/*
 * Puts frames with these symbols into the stack. known[i] is the frame of symbols[i], or NULL if it
 * has to be looked up; `known` may be NULL.
 */
static void frames_add(struct namer *namer, struct stack *stack, const struct symbol *symbols,
		       struct frame *const *known, size_t n)
{
	struct frame *frame;
	size_t i;

	for (i = 0; i < n; i++) {
		frame = known ? known[i] : NULL;
		if (frame)
			stack_table_ref_frame(namer->stacks, frame);
		else
			frame = stack_table_frame(namer->stacks, &symbols[i]);
		if (!frame) {
			stack->flags |= STACK_IS_TRUNCATED;
			break;
		}
		stack->frames[stack->n_frames++] = frame;
	}
}

static void kernel_stack_resolve(struct namer *namer, struct stack *stack, size_t n)
{
	struct symbol symbols[STACK_DEPTH];
	bool has_changing = false;
	size_t i, first = 0;
	char name[128];

	for (i = 0; i < n; i++) {
		kernel_names_lookup(&namer->kernel, stack->ip[i], i > 0, &symbols[i]);
		has_changing |= !symbols[i].name || strcmp(symbols[i].module, "kernel") != 0;
		stack->n_named += symbols[i].name != NULL;
	}
	if (has_changing)
		stack->names_version = namer->kernel.version + 1;
	if (!stack->is_sample)
		kernel_first_frame(symbols, n, &first, name, sizeof(name));
	frames_add(namer, stack, symbols + first, NULL, n - first);
	kernel_names_release(&namer->kernel);
}

/*
 * Returns the symbol of a frame from the cache. Its strings are valid while the cache or a stack
 * has the frame.
 */
static struct symbol symbol_of(const struct frame *frame, bool is_signal)
{
	return (struct symbol){
		.kind = frame->kind,
		.file_id = frame->file_id,
		.file_offset = frame->file_offset,
		.name = frame->name,
		.name_offset = frame->name_offset,
		.is_signal = is_signal,
		.module = frame->module,
		.code = frame->code,
	};
}

/*
 * Names the frames of a user stack. Frames that are in the cache are not looked up again: a new
 * process that runs a known program has the same frames, only at other addresses.
 */
static void user_stack_resolve(struct namer *namer, struct stack *stack, size_t n, bool is_again)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	struct code_place places[STACK_DEPTH];
	struct symbol symbols[STACK_DEPTH];
	struct frame *known[STACK_DEPTH];
	const uint32_t version = process_names_version(stack->process);
	const uint32_t loads = process_symbols_version(stack->process);
	bool is_call, is_signal = false, has_changing = false;
	size_t i, left;

	code_places(stack->process, stack->mappings, stack->ip, n, places);
	for (i = 0; i < n; i++) {
		is_call = i > 0 && !symbols[i - 1].is_signal;
		/* The place is that of a return address. */
		if (i > 0 && !is_call)
			places[i].file = 0;
		known[i] = places[i].file
				   ? frame_cache_get(namer->frames, &places[i], now, &is_signal)
				   : NULL;
		if (known[i])
			symbols[i] = symbol_of(known[i], is_signal);
		else
			user_lookup(namer, stack, stack->ip[i], is_call, is_again, &symbols[i]);
		has_changing |= symbols[i].kind == FRAME_JIT;
		stack->n_named += symbols[i].name != NULL;
	}
	if (has_changing || stack->n_named < n)
		stack->names_version = version + (stack->lacks_symbols ? loads : 0);
	left = generated_merge(symbols, n);
	stack->is_merged = left < n;
	frames_add(namer, stack, symbols, stack->is_merged ? NULL : known, left);
	for (i = 0; i < stack->n_frames && !stack->is_merged; i++)
		if (!known[i] && places[i].file && symbols[i].name)
			frame_cache_put(namer->frames, &places[i], stack->frames[i], now,
					symbols[i].is_signal);
	process_release_symbols(stack->process);
}

static void stack_name(struct namer *namer, struct stack *stack, bool is_again)
{
	size_t n = stack->n_raw < STACK_DEPTH ? stack->n_raw : STACK_DEPTH;

	if (stack->process)
		user_stack_resolve(namer, stack, n, is_again);
	else
		kernel_stack_resolve(namer, stack, n);
	stack_finish(namer, stack);
}

void namer_name(struct namer *namer, struct stack *stack)
{
	if (!stack->is_resolved)
		stack_name(namer, stack, false);
}

/* True if both stacks have the same frames: equal frames are the same object. */
static bool has_same_frames(const struct stack *a, const struct stack *b)
{
	return a->n_frames == b->n_frames &&
	       memcmp(a->frames, b->frames, a->n_frames * sizeof(struct frame *)) == 0;
}

/*
 * Names a stack again if names may have changed. Returns the stack with the new names, and a
 * reference to it for the caller. NULL if the old names are right: also if an address has no name
 * any more, as when its module was unloaded or its process has exited.
 */
static struct stack *stack_name_again(struct namer *namer, struct stack *stack)
{
	struct stack *again;
	uint32_t version = namer->kernel.version + 1;

	if (stack->process) {
		process_refresh_perf(stack->process, namer->until_ns);
		version = process_names_version(stack->process);
		if (stack->lacks_symbols)
			version += process_symbols_version(stack->process);
	}
	if (version == stack->names_version)
		return NULL;
	again = stack_table_again(namer->stacks, stack);
	if (!again)
		return NULL;
	stack_name(namer, again, true);
	if (again->n_named >= stack->n_named && !has_same_frames(again, stack) &&
	    !(again->flags & ~stack->flags & STACK_IS_TRUNCATED))
		return stack_table_replace(namer->stacks, stack, again);
	stack->names_version = again->names_version;
	stack->lacks_symbols = again->lacks_symbols;
	stack_table_discard(namer->stacks, again);
	return NULL;
}

/* One round of namer_renew() through the stacks of a window. */
struct renewal {
	struct namer *namer;
	bool is_of_named; /* the round is that of the stacks of which all addresses have names */
	int64_t until_ns; /* of CLOCK_THREAD_CPUTIME_ID */
};

static void stack_renew(void *userdata, struct stack **slot)
{
	const struct renewal *renewal = userdata;
	struct namer *namer = renewal->namer;
	struct stack *stack = *slot, *next;

	if (!stack || !stack->names_version || stack->flags & STACK_IS_AMBIGUOUS ||
	    (stack->n_named == stack->n_raw) != renewal->is_of_named)
		return;
	next = stack_table_successor(namer->stacks, stack);
	if (!next && clock_ns(CLOCK_THREAD_CPUTIME_ID) < renewal->until_ns)
		next = stack_name_again(namer, stack);
	if (!next)
		return;
	stack_unref(stack);
	*slot = next;
}

void namer_renew(struct namer *namer, struct window *window)
{
	struct renewal renewal = { .namer = namer };

	kernel_names_refresh(&namer->kernel);
	renewal.until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + RENEW_NS;
	window_visit_stacks(window, stack_renew, &renewal);
	renewal.is_of_named = true;
	window_visit_stacks(window, stack_renew, &renewal);
}

int namer_init(struct namer *namer, struct stack_table *stacks, char *const *idle_functions)
{
	*namer = (struct namer){ .stacks = stacks, .idle_functions = idle_functions };
	namer->frames = frame_cache_new(stacks);
	return namer->frames ? 0 : -ENOMEM;
}

void namer_fini(struct namer *namer)
{
	kernel_names_fini(&namer->kernel);
	frame_cache_free(namer->frames);
}

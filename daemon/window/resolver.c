/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/resolver.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/base/activity.h"
#include "daemon/base/log.h"
#include "daemon/process/process.h"
#include "daemon/symbol/kallsyms.h"
#include "daemon/symbol/kallsyms_line.h"
#include "daemon/symbol/own_bpf.h"
#include "daemon/window/frame_cache.h"
#include "daemon/window/generated.h"
#include "daemon/window/idle_stack.h"
#include "daemon/window/stack.h"
#include "daemon/window/stack_id.h"
#include "daemon/window/window.h"

/*
 * Minimum time between two reads of /proc/kallsyms. The file is read again when a kernel address
 * has no symbol, because a module may have been loaded since the last read, and when it is in
 * another tracer's BPF program: these come and go, and the file does not say where they end, so
 * that a new one can look like a part of an old one. A read takes some 80 ms of CPU time, which
 * would be a fifth of a budget of 4 % if it came every 10 s. So from the second time on, the time
 * is at least KERNEL_RELOAD_COST times what the last read took, but not more than
 * KERNEL_RELOAD_MAX_NS.
 */
#define KERNEL_RELOAD_NS     (10 * NS_PER_S)
#define KERNEL_RELOAD_MAX_NS (60 * NS_PER_S)
enum { KERNEL_RELOAD_COST = 500 };

/*
 * Frames of BPF programs and of their callers are at the leaf of a stack. Only this many frames,
 * counted from the leaf, are searched for them.
 */
enum { MAX_TRACER_FRAMES = 16 };

/* An entry of the resolver's queue, with either a stack to be named or a window to be passed on. */
struct item {
	struct item *next;
	int64_t time_ns; /* time at which the entry was queued */
	struct stack *stack;
	struct window *window;
};

struct resolver {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t added;
	bool is_asleep; /* the thread sleeps, and was not woken */
	struct item *first;
	struct item **last;
	int64_t taken_ns; /* time_ns of the item that the thread works on; 0: it works on none */
	struct resolver_stats stats;
	bool is_full; /* true if a warning was logged that the queue is full; false again when the
			 queue is empty */
	bool is_stopping;
	uint64_t seq; /* number of the newest window that was queued */

	struct process_table *processes;
	struct stack_table *stacks;
	struct window_sink sink;
	char *const *idle_functions;
	struct frame_cache *frames; /* used by the resolver's thread only */
	struct kallsyms *kernel;    /* symbols of the kernel; used by the resolver's thread only */
	struct kallsyms *kernel_before; /* symbols before the last reload; the stack that is being
					   resolved may point to them */
	int64_t kernel_reload_ns;	/* when they may be read again */
	uint64_t kernel_own_bpf;	/* own_bpf_generation() before the symbols were read */
	_Atomic int kernel_status;
	uint64_t sched_start; /* address at which the scheduler's functions start; 0: unknown */
	uint64_t sched_end;   /* address at which the scheduler's functions end; 0: unknown */
};

/*
 * Reads from /proc/kallsyms the addresses of two labels: the kernel puts the scheduler's functions
 * between them. struct kallsyms does not have these labels, because it has functions only.
 */
static void sched_text_read(struct resolver *resolver)
{
	_cleanup_(fclosep) FILE *f = fopen(KALLSYMS_PATH, "re");
	_cleanup_(freep) char *text = NULL;
	struct kallsyms_line line;
	size_t room = 0;

	while (f && getline(&text, &room, f) > 0) {
		if (kallsyms_line_parse(text, &line))
			continue;
		if (strcmp(line.name, "__sched_text_start") == 0)
			resolver->sched_start = line.address;
		else if (strcmp(line.name, "__sched_text_end") == 0)
			resolver->sched_end = line.address;
	}
}

static void kernel_load(struct resolver *resolver)
{
	const int64_t begun_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct kallsyms *symbols;
	int64_t wait_ns;
	int r;

	resolver->kernel_own_bpf = own_bpf_generation();
	r = kallsyms_load(NULL, &symbols);
	wait_ns = KERNEL_RELOAD_COST * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns);
	if (!resolver->kernel || wait_ns < KERNEL_RELOAD_NS)
		wait_ns = KERNEL_RELOAD_NS;
	if (wait_ns > KERNEL_RELOAD_MAX_NS)
		wait_ns = KERNEL_RELOAD_MAX_NS;
	resolver->kernel_reload_ns = clock_ns(CLOCK_MONOTONIC) + wait_ns;
	if (r != resolver->kernel_status && r)
		log_err(r, "read the kernel's symbols from /proc/kallsyms");
	resolver->kernel_status = r;
	if (r)
		return;
	resolver->kernel_before = resolver->kernel;
	resolver->kernel = symbols;
}

/* Looks up an address in the symbols that are loaded. False if they have no name for it. */
static bool kernel_find(const struct resolver *resolver, uint64_t ip, bool is_call, bool is_own,
			struct symbol *out)
{
	*out = (struct symbol){ .kind = FRAME_KERNEL, .file_offset = ip };
	if (!resolver->kernel || !kallsyms_lookup(resolver->kernel, ip, is_call, out))
		return false;
	if (is_own)
		out->module = OWN_BPF_MODULE;
	return true;
}

/* True if the symbols were read too long ago to name the address, for which they have `found`. */
static bool kernel_is_old(const struct resolver *resolver, const struct symbol *found, bool is_own)
{
	bool is_bpf = found->module && strcmp(found->module, "bpf") == 0;

	if (is_own)
		return resolver->kernel_own_bpf != own_bpf_generation();
	return (!found->name || is_bpf) && clock_ns(CLOCK_MONOTONIC) >= resolver->kernel_reload_ns;
}

static void kernel_lookup(struct resolver *resolver, uint64_t ip, bool is_call, struct symbol *out)
{
	bool is_own = own_bpf_has(is_call ? ip - 1 : ip);

	kernel_find(resolver, ip, is_call, is_own, out);
	if (resolver->kernel_before || !kernel_is_old(resolver, out, is_own))
		return;
	kernel_load(resolver);
	kernel_find(resolver, ip, is_call, is_own, out);
}

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
 * True if the name is that of a function, perhaps with a suffix: compilers may rename do_poll to
 * do_poll.constprop.0.
 */
static bool is_function(const char *name, const char *function)
{
	size_t n = strlen(function);

	return name && strncmp(name, function, n) == 0 && (name[n] == '\0' || name[n] == '.');
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
		if (is_function(stack->frames[i]->name, "do_freezer_trap") ||
		    is_function(stack->frames[i]->name, "__refrigerator"))
			return true;
	return leaf < stack->n_frames && is_function(stack->frames[leaf]->name, "get_signal");
}

/*
 * Returns how many frames of a kernel stack, counted from the leaf, are functions of the scheduler.
 * If all of them are, does not count the last one. 0 for user stacks, and for stacks of running
 * threads, which end in what the thread ran.
 */
static size_t sched_frames(const struct resolver *resolver, const struct stack *stack)
{
	const uint64_t *ip = stack->ip + (stack->n_raw - stack->n_frames);
	size_t i = 0;

	if (stack->is_sample)
		return 0;
	while (!stack->process && i + 1 < stack->n_frames && ip[i] > resolver->sched_start &&
	       ip[i] < resolver->sched_end)
		i++;
	return i;
}

static void stack_finish(struct resolver *resolver, struct stack *stack)
{
	size_t skip = sched_frames(resolver, stack);

	stack->id = stack_id_of(stack->frames, stack->n_frames);
	stack->place_id = stack_id_of(stack->frames + skip, stack->n_frames - skip);
	stack->functions_id = stack_functions_id_of(stack->frames, stack->n_frames);
	/*
	 * A kernel stack that fills the buffer may have lost frames. User stacks have the flag
	 * already.
	 */
	if (!stack->process && stack->n_raw >= STACK_DEPTH)
		stack->flags |= STACK_IS_TRUNCATED;
	stack->is_idle = idle_stack(resolver->idle_functions, stack);
	if (stack_is_frozen(stack, skip))
		stack->flags |= STACK_IS_FROZEN;
	stack->is_resolved = true;
}

/*
 * Finds the symbol of an address in a process. If the address is in no known mapping, updates the
 * process's mappings and looks again. If it is in code made at run time (JIT), reads again the list
 * of names that the process itself writes, and looks again; does this twice, because the process
 * may just be writing the name. May block: call on the resolver's thread only.
 */
static void user_lookup(const struct stack *stack, uint64_t ip, bool is_call, struct symbol *out)
{
	enum process_miss miss = process_lookup(stack->process, stack->mappings, ip, is_call, out);

	if (miss == PROCESS_MISS_MAPPING) {
		process_refresh(stack->process, stack->mappings, miss);
		miss = process_lookup(stack->process, stack->mappings, ip, is_call, out);
	}
	for (int i = 0; i < 2 && miss == PROCESS_MISS_JIT; i++) {
		process_refresh(stack->process, stack->mappings, miss);
		miss = process_lookup(stack->process, stack->mappings, ip, is_call, out);
	}
}

/*
 * Puts frames with these symbols into the stack. known[i] is the frame of symbols[i], or NULL if it
 * has to be looked up; `known` may be NULL.
 */
static void frames_add(struct resolver *resolver, struct stack *stack, const struct symbol *symbols,
		       struct frame *const *known, size_t n)
{
	struct frame *frame;
	size_t i;

	for (i = 0; i < n; i++) {
		frame = known ? known[i] : NULL;
		if (frame)
			stack_table_ref_frame(resolver->stacks, frame);
		else
			frame = stack_table_frame(resolver->stacks, &symbols[i]);
		if (!frame) {
			stack->flags |= STACK_IS_TRUNCATED;
			break;
		}
		stack->frames[stack->n_frames++] = frame;
	}
}

static void kernel_stack_resolve(struct resolver *resolver, struct stack *stack, size_t n)
{
	struct symbol symbols[STACK_DEPTH];
	size_t i, first = 0;
	char name[128];

	for (i = 0; i < n; i++)
		kernel_lookup(resolver, stack->ip[i], i > 0, &symbols[i]);
	if (!stack->is_sample)
		kernel_first_frame(symbols, n, &first, name, sizeof(name));
	frames_add(resolver, stack, symbols + first, NULL, n - first);
	resolver->kernel_before = kallsyms_free(resolver->kernel_before);
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
static void user_stack_resolve(struct resolver *resolver, struct stack *stack, size_t n)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	struct process_place places[STACK_DEPTH];
	struct symbol symbols[STACK_DEPTH];
	struct frame *known[STACK_DEPTH];
	bool is_call, is_signal = false;
	size_t i, left;

	process_places(stack->process, stack->mappings, stack->ip, n, places);
	for (i = 0; i < n; i++) {
		is_call = i > 0 && !symbols[i - 1].is_signal;
		/* The place is that of a return address. */
		if (i > 0 && !is_call)
			places[i].file = 0;
		known[i] = places[i].file
				   ? frame_cache_get(resolver->frames, &places[i], now, &is_signal)
				   : NULL;
		if (known[i])
			symbols[i] = symbol_of(known[i], is_signal);
		else
			user_lookup(stack, stack->ip[i], is_call, &symbols[i]);
	}
	left = generated_merge(symbols, n);
	stack->is_merged = left < n;
	frames_add(resolver, stack, symbols, stack->is_merged ? NULL : known, left);
	for (i = 0; i < stack->n_frames && !stack->is_merged; i++)
		if (!known[i] && places[i].file && symbols[i].name)
			frame_cache_put(resolver->frames, &places[i], stack->frames[i], now,
					symbols[i].is_signal);
	process_release_symbols(stack->process);
}

static void stack_resolve(struct resolver *resolver, struct stack *stack)
{
	size_t n = stack->n_raw < STACK_DEPTH ? stack->n_raw : STACK_DEPTH;

	if (stack->is_resolved)
		return;
	if (stack->process)
		user_stack_resolve(resolver, stack, n);
	else
		kernel_stack_resolve(resolver, stack, n);
	stack_finish(resolver, stack);
}

/*
 * Removes the first item from the queue and returns it; NULL if the queue is empty. Called with the
 * lock held.
 */
static struct item *resolver_take(struct resolver *resolver)
{
	struct item *item = resolver->first;

	if (!item) {
		resolver->taken_ns = 0;
		resolver->is_full = false;
		return NULL;
	}
	resolver->taken_ns = item->time_ns;
	resolver->first = item->next;
	if (!resolver->first)
		resolver->last = &resolver->first;
	if (item->stack)
		resolver->stats.stacks--;
	else
		resolver->stats.windows--;
	return item;
}

/*
 * Returns how many bytes of memory are in use because windows refer to them: those of stacks, and
 * those of processes that have exited.
 */
static size_t referred_bytes(struct resolver *resolver)
{
	return stack_table_referred_bytes(resolver->stacks) +
	       process_table_referred_bytes(resolver->processes);
}

static void *resolver_run(void *data)
{
	struct activity activity = { .thread = "resolver", .work = "looking up names" };
	struct resolver *resolver = data;
	struct item *item;

	activity_watch(&activity);
	kernel_load(resolver);
	sched_text_read(resolver);
	for (;;) {
		pthread_mutex_lock(&resolver->lock);
		resolver->taken_ns = 0;
		while (!resolver->first && !resolver->is_stopping) {
			resolver->is_asleep = true;
			pthread_cond_wait(&resolver->added, &resolver->lock);
		}
		resolver->is_asleep = false;
		item = resolver_take(resolver);
		pthread_mutex_unlock(&resolver->lock);
		if (!item)
			break;
		activity_begin(&activity);
		if (item->stack)
			stack_resolve(resolver, item->stack);
		else
			resolver->sink.add(resolver->sink.userdata, item->window,
					   referred_bytes(resolver));
		activity_end(&activity);
		free(item);
	}
	activity_unwatch(&activity);
	return NULL;
}

int resolver_new(struct process_table *processes, struct stack_table *stacks,
		 const struct window_sink *sink, char *const *idle_functions, struct resolver **out)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));
	int r;

	if (!resolver)
		return -ENOMEM;
	resolver->frames = frame_cache_new(stacks);
	if (!resolver->frames) {
		free(resolver);
		return -ENOMEM;
	}
	resolver->processes = processes;
	resolver->stacks = stacks;
	resolver->sink = *sink;
	resolver->idle_functions = idle_functions;
	resolver->last = &resolver->first;
	pthread_mutex_init(&resolver->lock, NULL);
	pthread_cond_init(&resolver->added, NULL);
	r = pthread_create(&resolver->thread, NULL, resolver_run, resolver);
	if (r) {
		pthread_cond_destroy(&resolver->added);
		pthread_mutex_destroy(&resolver->lock);
		frame_cache_free(resolver->frames);
		free(resolver);
		return -r;
	}
	pthread_setname_np(resolver->thread, "resolver");
	*out = resolver;
	return 0;
}

struct resolver *resolver_free(struct resolver *resolver)
{
	if (!resolver)
		return NULL;
	pthread_mutex_lock(&resolver->lock);
	resolver->is_stopping = true;
	pthread_cond_signal(&resolver->added);
	pthread_mutex_unlock(&resolver->lock);
	pthread_join(resolver->thread, NULL);
	kallsyms_free(resolver->kernel);
	frame_cache_free(resolver->frames);
	pthread_cond_destroy(&resolver->added);
	pthread_mutex_destroy(&resolver->lock);
	free(resolver);
	return NULL;
}

/*
 * Counts the item as queued and returns 0. If the queue is full, counts it as dropped and returns
 * -ENOBUFS. Called with the lock held.
 */
static int resolver_admit(struct resolver *resolver, const struct item *item)
{
	struct resolver_stats *stats = &resolver->stats;
	size_t *n = item->window ? &stats->windows : &stats->stacks;
	size_t max = n == &stats->windows ? RESOLVER_MAX_WINDOWS : RESOLVER_MAX_STACKS;

	if (*n < max) {
		(*n)++;
		return 0;
	}
	if (n == &stats->windows)
		stats->windows_dropped++;
	else
		stats->stacks_dropped++;
	if (!resolver->is_full)
		log_warning("names are looked up too slowly: %zu stacks and %zu windows wait, "
			    "others are dropped until none does",
			    stats->stacks, stats->windows);
	resolver->is_full = true;
	return -ENOBUFS;
}

static int resolver_add(struct resolver *resolver, struct stack *stack, struct window *window,
			uint64_t *seq_out)
{
	struct item *item = malloc(sizeof(*item));
	int r;

	if (!item)
		return -ENOMEM;
	*item = (struct item){
		.time_ns = clock_ns(CLOCK_MONOTONIC),
		.stack = stack,
		.window = window,
	};
	pthread_mutex_lock(&resolver->lock);
	r = resolver_admit(resolver, item);
	if (!r) {
		if (window)
			*seq_out = window->seq = ++resolver->seq;
		*resolver->last = item;
		resolver->last = &item->next;
	}
	pthread_mutex_unlock(&resolver->lock);
	if (r)
		free(item);
	return r;
}

void resolver_stats(struct resolver *resolver, struct resolver_stats *out)
{
	pthread_mutex_lock(&resolver->lock);
	*out = resolver->stats;
	if (resolver->taken_ns)
		out->named_ns = resolver->taken_ns;
	else if (resolver->first)
		out->named_ns = resolver->first->time_ns;
	else
		out->named_ns = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_unlock(&resolver->lock);
}

int resolver_add_stack(struct resolver *resolver, struct stack *stack)
{
	return resolver_add(resolver, stack, NULL, NULL);
}

int resolver_add_window(struct resolver *resolver, struct window *window, uint64_t *seq_out)
{
	int r = resolver_add(resolver, NULL, window, seq_out);

	if (r)
		window_unref(window);
	resolver_wake(resolver);
	return r;
}

void resolver_wake(struct resolver *resolver)
{
	bool wakes;

	pthread_mutex_lock(&resolver->lock);
	wakes = resolver->is_asleep && resolver->first;
	if (wakes)
		resolver->is_asleep = false;
	pthread_mutex_unlock(&resolver->lock);
	if (wakes)
		pthread_cond_signal(&resolver->added);
}

int resolver_kernel_status(const struct resolver *resolver)
{
	return resolver->kernel_status;
}

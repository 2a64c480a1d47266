/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/resolver.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/base/activity.h"
#include "daemon/base/log.h"
#include "daemon/base/thread.h"
#include "daemon/process/process.h"
#include "daemon/window/namer.h"
#include "daemon/window/stack.h"
#include "daemon/window/window.h"

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
	struct namer namer; /* used by the resolver's thread only */
};

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
	kernel_names_init(&resolver->namer.kernel);
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
		/* A stack or a window that has been queued for that long waits for no file. */
		resolver->namer.until_ns = item->time_ns + SYMBOLS_WAIT_NS;
		if (item->stack) {
			namer_name(&resolver->namer, item->stack);
		} else {
			namer_renew(&resolver->namer, item->window);
			resolver->sink.add(resolver->sink.userdata, item->window,
					   referred_bytes(resolver));
		}
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
	r = namer_init(&resolver->namer, stacks, idle_functions);
	if (r) {
		free(resolver);
		return r;
	}
	resolver->processes = processes;
	resolver->stacks = stacks;
	resolver->sink = *sink;
	resolver->last = &resolver->first;
	pthread_mutex_init(&resolver->lock, NULL);
	pthread_cond_init(&resolver->added, NULL);
	r = thread_start(&resolver->thread, "resolver", resolver_run, resolver);
	if (r) {
		pthread_cond_destroy(&resolver->added);
		pthread_mutex_destroy(&resolver->lock);
		namer_fini(&resolver->namer);
		free(resolver);
		return r;
	}
	*out = resolver;
	return 0;
}

void resolver_end(struct resolver *resolver)
{
	bool is_first;

	if (!resolver)
		return;
	pthread_mutex_lock(&resolver->lock);
	is_first = !resolver->is_stopping;
	resolver->is_stopping = true;
	pthread_cond_signal(&resolver->added);
	pthread_mutex_unlock(&resolver->lock);
	if (is_first)
		pthread_join(resolver->thread, NULL);
}

struct resolver *resolver_free(struct resolver *resolver)
{
	if (!resolver)
		return NULL;
	resolver_end(resolver);
	namer_fini(&resolver->namer);
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

	if (resolver->is_stopping)
		return -ESHUTDOWN;
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
	return resolver->namer.kernel.status;
}

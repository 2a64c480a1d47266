/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Argument: a program that starts workers which parse files. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/host/procfs.h"
#include "daemon/parse/parser.h"
#include "daemon/window/frame_cache.h"
#include "daemon/window/namer.h"
#include "daemon/window/resolver.h"
#include "daemon/window/window.h"

enum { DROPPED = 3 };

static const char *parse_program;

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned int windows_seen;
static unsigned int windows_done;
static uint64_t last_seq;

static void count(unsigned int *what)
{
	pthread_mutex_lock(&lock);
	(*what)++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void wait_for(const unsigned int *what, unsigned int n)
{
	pthread_mutex_lock(&lock);
	while (*what < n)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void on_window(void *userdata, struct window *window, size_t referred_bytes)
{
	count(&windows_seen);
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	assert_true(window->seq > last_seq);
	last_seq = window->seq;
	window_unref(window);
	count(&windows_done);
}

static int add_window(struct resolver *resolver)
{
	struct window *window = window_new();
	uint64_t seq;

	assert_non_null(window);
	return resolver_add_window(resolver, window, &seq);
}

static void fill_windows(struct resolver *resolver)
{
	unsigned int i;

	for (i = 0; i < RESOLVER_MAX_WINDOWS; i++)
		assert_int_equal(add_window(resolver), 0);
	for (i = 0; i < DROPPED; i++)
		assert_int_equal(add_window(resolver), -ENOBUFS);
}

/* Queues one stack until the queue is full: it is resolved once only. */
static void fill_stacks(struct resolver *resolver, struct stack *stack)
{
	unsigned int i;

	for (i = 0; i < RESOLVER_MAX_STACKS; i++)
		assert_int_equal(resolver_add_stack(resolver, stack), 0);
	for (i = 0; i < DROPPED; i++)
		assert_int_equal(resolver_add_stack(resolver, stack), -ENOBUFS);
}

static void test_the_queue_has_an_end(void **state)
{
	const struct window_sink sink = { on_window, NULL };
	char *const idle[] = { NULL };
	int64_t before = clock_ns(CLOCK_MONOTONIC), added;
	struct process_table *processes;
	struct stack_table *stacks;
	struct resolver *resolver;
	struct resolver_stats stats;
	struct stack *stack;
	uint64_t ip = 1;
	bool is_new;

	assert_int_equal(process_table_new_stored(&processes), 0);
	assert_int_equal(stack_table_new(1 << 20, &stacks), 0);
	stack = stack_table_put(stacks, 100, NULL, &ip, 1, &is_new);
	assert_non_null(stack);
	assert_int_equal(resolver_new(processes, stacks, &sink, idle, &resolver), 0);
	pthread_mutex_lock(&gate);
	assert_int_equal(add_window(resolver), 0);
	wait_for(&windows_seen, 1);
	added = clock_ns(CLOCK_MONOTONIC);
	fill_windows(resolver);
	fill_stacks(resolver, stack);
	resolver_stats(resolver, &stats);
	assert_int_equal(stats.windows, RESOLVER_MAX_WINDOWS);
	assert_int_equal(stats.stacks, RESOLVER_MAX_STACKS);
	assert_int_equal(stats.windows_dropped, DROPPED);
	assert_int_equal(stats.stacks_dropped, DROPPED);
	/* No window that was queued since then has been named. */
	assert_true(stats.named_ns >= before && stats.named_ns <= added);
	/* Once the queue has room it goes on, and all that was accepted is done in order. */
	pthread_mutex_unlock(&gate);
	wait_for(&windows_done, 1 + RESOLVER_MAX_WINDOWS);
	assert_int_equal(add_window(resolver), 0);
	resolver_free(resolver);
	assert_int_equal(windows_done, 2 + RESOLVER_MAX_WINDOWS);
	assert_true(stack->is_resolved);
	stack_table_free(stacks);
	process_table_free(processes);
}

/* Frames of the cache keep their place, also that of a call, and go when they are looked up again.
 */
static void test_frames_are_cached(void **state)
{
	const struct code_place place = { .file = 7, .offset = 0x1000, .is_call = true };
	const struct symbol symbol = { .kind = FRAME_NATIVE, .file_id = 1, .name = "f" };
	const struct symbol other = { .kind = FRAME_NATIVE, .file_id = 1, .name = "g" };
	struct code_place near = place;
	struct stack_table_stats stats;
	struct stack_table *stacks;
	struct frame_cache *cache;
	struct frame *f, *g;
	bool is_signal = false;

	assert_int_equal(stack_table_new(1 << 20, &stacks), 0);
	cache = frame_cache_new(stacks);
	f = stack_table_frame(stacks, &symbol);
	g = stack_table_frame(stacks, &other);
	assert_null(frame_cache_get(cache, &place, 0, &is_signal));
	frame_cache_put(cache, &place, f, 0, true);
	assert_ptr_equal(frame_cache_get(cache, &place, 0, &is_signal), f);
	assert_true(is_signal);
	near.is_call = false; /* the byte may belong to another function */
	assert_null(frame_cache_get(cache, &near, 0, &is_signal));
	near = place;
	near.file++;
	assert_null(frame_cache_get(cache, &near, 0, &is_signal));
	near = place;
	near.offset++;
	assert_null(frame_cache_get(cache, &near, 0, &is_signal));
	assert_null(frame_cache_get(cache, &place, 60 * NS_PER_S, &is_signal));

	/* The cache has references: f goes with the entry, g with the cache. */
	stack_table_drop_frame(stacks, f);
	stack_table_stats(stacks, &stats);
	assert_int_equal(stats.frames, 2);
	frame_cache_put(cache, &place, g, 60 * NS_PER_S, false);
	stack_table_drop_frame(stacks, g);
	stack_table_stats(stacks, &stats);
	assert_int_equal(stats.frames, 1);
	assert_ptr_equal(frame_cache_get(cache, &place, 61 * NS_PER_S, &is_signal), g);
	assert_false(is_signal);
	frame_cache_free(cache);
	stack_table_stats(stacks, &stats);
	assert_int_equal(stats.frames, 0);
	stack_table_free(stacks);
}

/* Returns this process in a table whose threads read it. */
static struct process *self_see(struct process_table *processes)
{
	struct procfs_stat stat;
	int fd = procfs_open(getpid(), &stat);
	const struct process_id id = {
		.pid = getpid(),
		.exec_gen = 1,
		.start_boot_ns = procfs_ticks_ns(stat.start_ticks) + 1,
	};

	assert_true(fd >= 0);
	close(fd);
	return process_table_see(processes, &id, false, NULL);
}

/* Maps a page of a file at `at`, and returns when the table knows of it. */
static void file_map(struct process *process, void *at)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct symbol symbol;

	assert_ptr_equal(mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0), at);
	close(fd);
	while (process_lookup(process, 0, (uint64_t)(uintptr_t)at, false, &symbol) ==
	       PROCESS_MISS_MAPPING) {
		process_refresh(process, 0, PROCESS_MISS_MAPPING, INT64_MAX);
		usleep(1000);
	}
	process_release_symbols(process);
}

/* An address of which nothing was known gets what was learnt since in the next window that has it.
 */
static void test_what_had_no_name_is_named_later(void **state)
{
	void *at = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *const idle[] = { NULL };
	const uint64_t ip = (uint64_t)(uintptr_t)at;
	struct window *window = window_new();
	struct process_table *processes;
	struct stack_table *stacks;
	struct process *process;
	struct namer namer;
	struct stack *stack;
	bool is_new;

	assert_int_equal(process_table_new(16 << 20, &processes), 0);
	assert_int_equal(stack_table_new(1 << 20, &stacks), 0);
	assert_int_equal(namer_init(&namer, stacks, idle), 0);
	kernel_names_init(&namer.kernel);
	process = self_see(processes);
	stack = stack_table_put(stacks, 100, process, &ip, 1, &is_new);
	namer_name(&namer, stack);
	assert_null(stack->frames[0]->module);
	file_map(process, at);
	window_add_row(window)->user = stack;
	namer_renew(&namer, window);
	assert_ptr_not_equal(window->rows[0].user, stack);
	assert_non_null(window->rows[0].user->frames[0]->module);
	window_unref(window);
	process_unref(process);
	namer_fini(&namer);
	stack_table_free(stacks);
	process_table_free(processes);
}

/* Sends a signal to the children of a thread, and to theirs: to all that parse files. */
static void children_signal(pid_t tid, int signo)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64];
	int pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)tid, (int)tid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fscanf(f, "%d", &pid) == 1) {
		assert_int_equal(kill(pid, signo), 0);
		children_signal(pid, signo);
	}
}

/* A table with this process, whose files are parsed by workers that are stopped. */
static struct {
	struct process_table *processes;
	struct stack_table *stacks;
	struct process *process;
	struct parser *parser;
	struct namer namer;
	struct window *window;
} slow;

static void a_function(void)
{
}

static void another_function(void)
{
	__asm__ volatile("nop"); /* so that it is not merged with the one above */
}

static uint64_t ip_of(void (*function)(void))
{
	return (uint64_t)(uintptr_t)function;
}

static int slow_setup(void **state)
{
	static char *const idle[] = { NULL };
	struct symbol symbol;

	assert_int_equal(process_table_new(16 << 20, &slow.processes), 0);
	assert_int_equal(stack_table_new(1 << 20, &slow.stacks), 0);
	assert_int_equal(namer_init(&slow.namer, slow.stacks, idle), 0);
	kernel_names_init(&slow.namer.kernel);
	slow.window = window_new();
	assert_int_equal(parser_new(parse_program, &slow.parser), 0);
	process_table_set_parser(slow.processes, slow.parser);
	slow.process = self_see(slow.processes);
	while (process_lookup(slow.process, 0, ip_of(a_function), false, &symbol) ==
	       PROCESS_MISS_MAPPING)
		process_refresh(slow.process, 0, PROCESS_MISS_MAPPING, INT64_MAX);
	process_release_symbols(slow.process);
	children_signal(getpid(), SIGSTOP);
	return 0;
}

static int slow_teardown(void **state)
{
	children_signal(getpid(), SIGCONT);
	window_unref(slow.window);
	process_unref(slow.process);
	namer_fini(&slow.namer);
	stack_table_free(slow.stacks);
	process_table_free(slow.processes);
	parser_free(slow.parser);
	return 0;
}

/* Adds a row with a stack of one function to the window, and names it. Returns its index. */
static size_t slow_name(uint64_t id, uint64_t ip, int64_t until_ns)
{
	bool is_new;
	struct stack *stack = stack_table_put(slow.stacks, id, slow.process, &ip, 1, &is_new);

	slow.namer.until_ns = until_ns;
	namer_name(&slow.namer, stack);
	assert_non_null(stack->frames[0]->module);
	window_add_row(slow.window)->user = stack;
	return slow.window->n_rows - 1;
}

static const char *slow_function(size_t row)
{
	return slow.window->rows[row].user->frames[0]->name;
}

/* A file whose symbols are not read in time has no names at first, and holds nothing else up. */
static void test_a_slow_file_is_named_later(void **state)
{
	size_t a = slow_name(100, ip_of(a_function), clock_ns(CLOCK_MONOTONIC) + NS_PER_MS), b;
	struct process_stats stats;

	assert_null(slow_function(a));
	/* Nobody waits a second time. */
	b = slow_name(101, ip_of(another_function), INT64_MAX);
	assert_null(slow_function(b));
	process_table_stats(slow.processes, &stats);
	assert_int_equal(stats.symbols_late, 1);
	children_signal(getpid(), SIGCONT);
	while (!slow_function(a) || !slow_function(b)) {
		namer_renew(&slow.namer, slow.window);
		usleep(1000);
	}
	assert_string_equal(slow_function(a), "a_function");
	assert_string_equal(slow_function(b), "another_function");
}

/* A stack that could not wait gets its names when another one has waited for the file. */
static void test_who_did_not_wait_is_named_too(void **state)
{
	size_t a = slow_name(100, ip_of(a_function), 0), b;

	assert_null(slow_function(a));
	children_signal(getpid(), SIGCONT);
	b = slow_name(101, ip_of(another_function), INT64_MAX);
	assert_string_equal(slow_function(b), "another_function");
	namer_renew(&slow.namer, slow.window);
	assert_string_equal(slow_function(a), "a_function");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_had_no_name_is_named_later),
		cmocka_unit_test_setup_teardown(test_a_slow_file_is_named_later, slow_setup,
						slow_teardown),
		cmocka_unit_test_setup_teardown(test_who_did_not_wait_is_named_too, slow_setup,
						slow_teardown),
		cmocka_unit_test(test_the_queue_has_an_end),
		cmocka_unit_test(test_frames_are_cached),
	};

	parse_program = argc > 1 ? argv[1] : NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Asks a recorder that only serves a database who held what threads waited for: answers about
 * made-up windows that have this.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/holder/holder.h"
#include "daemon/query/answer_holders.h"
#include "daemon/query/query.h"
#include "daemon/session/recorder.h"

#define LENGTH_NS (5 * NS_PER_S)
#define REAL_NS	  (INT64_C(1700000000) * NS_PER_S)
#define SINCE_NS  (2 * NS_PER_S)
#define END_NS	  (12 * NS_PER_S)
#define LOOKED_NS (REAL_NS + LENGTH_NS + 7)

/*
 * Three windows of 5 s. The waits begin at SINCE_NS. A waits for B, which waits for C, which
 * sleeps; D and E wait for each other; F waits alone, and has nothing recorded. All but A's go on;
 * A's ends in the last window. Before its wait, B was frozen.
 *
 * The waits of H and K begin at LATE_NS. G waited for H, as it was looked up before that, and H for
 * G. I, J and K wait in a ring, which was looked up again in the last window only. So do L and M,
 * but M for events.
 *
 * STOPPED: a state that says why a thread waits without stacks.
 */
#define LATE_NS (7 * NS_PER_S)

enum { WINDOWS = 3, SLEEPING = 1, STOPPED = 4 };
enum { PID = 0x3f000000, A = PID, B, C, D, E, F, G, H, I, J, K, L, M, TIDS_END };
/*
 * Threads without rows, of which something is recorded: two that take turns with a lock, a chain,
 * and two in a ring each, whose waits have just begun at the end of the second window. Those of
 * FLOCK_A and FLOCK_B are for a lock.
 */
enum { TURN_A = PID + 100, TURN_B, CHAIN = PID + 200, CHAIN_END = CHAIN + 11 };
enum { YOUNG_A = PID + 300, YOUNG_B, OLDER_A = PID + 310, OLDER_B, FLOCK_A = PID + 320, FLOCK_B };

static char directory[] = "/tmp/test_recorded_holders.XXXXXX";
static char path[64];
static struct process_table *table;
static struct config *config;
static struct recorder recorder = { .is_serve_only = true };
static struct wire_error error;

static int64_t since_of(int32_t tid)
{
	if (tid == YOUNG_B || tid == OLDER_B || tid == FLOCK_B)
		return 2 * LENGTH_NS - (tid == OLDER_B ? 110 : 90) * NS_PER_MS;
	return tid == H || tid == K ? LATE_NS : SINCE_NS;
}

static void wait_add(struct window *window, int32_t tid)
{
	const struct process_info info = { .id = { .pid = PID, .start_boot_ns = 5 },
					   .comm = "program",
					   .exe = "/usr/bin/a" };
	struct window_image *image = window_add_image(window);
	bool has_ended = tid == A && window->end_ns == WINDOWS * LENGTH_NS;

	image->process = process_table_add_stored(table, &info);
	image->uid = (uint64_t)tid;
	image->tid = tid;
	image->start_boot_ns = 6;
	memcpy(image->comm, "thread", 7);
	if (tid == B && window->start_ns == 0) {
		struct window_span *span = window_add_span(window);

		span->image = (uint32_t)window->n_images - 1;
		span->state = SLEEPING | STATE_FROZEN;
		span->start_ns = SINCE_NS / 4;
		span->wake_ns = span->end_ns = SINCE_NS / 2;
	}
	if (has_ended) {
		struct window_span *span = window_add_span(window);

		span->image = (uint32_t)window->n_images - 1;
		span->state = STOPPED;
		span->start_ns = since_of(tid);
		span->wake_ns = span->end_ns = END_NS;
	} else {
		struct window_open *open = window_add_open(window);

		open->image = (uint32_t)window->n_images - 1;
		open->state = tid == C ? SLEEPING : STOPPED;
		open->start_ns = since_of(tid);
		open->wake_ns = INT64_MAX;
	}
}

static void held_add(struct window *window, int32_t tid, int32_t holder, int64_t looked_ns)
{
	struct held_wait wait = {
		.pid = PID,
		.tid = tid,
		.comm = "thread",
		.since_ns = REAL_NS + since_of(tid),
		.looked_ns = looked_ns,
		.last_ns = REAL_NS + window->end_ns,
		.reason = tid == M	   ? REASON_POLL
			  : tid == TURN_B  ? REASON_MUTEX
			  : tid == FLOCK_B ? REASON_FLOCK
			  : holder	   ? REASON_STOPPED
					   : REASON_SLEEP,
	};

	if ((tid == A && window->end_ns == WINDOWS * LENGTH_NS) || since_of(tid) > window->end_ns)
		return;
	if (holder) {
		assert_true(asprintf(&wait.object, "/%d", tid) > 0);
		wait.by[wait.n_by++] = (struct held_by){ PID, holder, "thread" };
	}
	assert_int_equal(window_held_put(&window->held, &wait), 0);
}

static void window_write(struct store *store, size_t n)
{
	struct window *window = window_new();
	const int64_t now_ns = LOOKED_NS + (int64_t)n * LENGTH_NS;
	int32_t tid;

	window->seq = n + 1;
	window->session = 1 + PROBE_OFFCPU;
	window->kind = PROBE_OFFCPU;
	window->start_ns = (int64_t)n * LENGTH_NS;
	window->end_ns = window->start_ns + LENGTH_NS;
	window->real_offset_ns = REAL_NS;
	window->lost[LOST_WAIT_KEYS] = n + 1;
	for (tid = A; tid < TIDS_END; tid++)
		if (since_of(tid) < window->end_ns)
			wait_add(window, tid);
	held_add(window, A, B, LOOKED_NS);
	held_add(window, B, C, LOOKED_NS);
	held_add(window, C, 0, 0);
	held_add(window, D, E, LOOKED_NS);
	held_add(window, E, D, LOOKED_NS);
	held_add(window, G, H, LOOKED_NS);
	held_add(window, H, G, now_ns);
	held_add(window, I, J, n + 1 == WINDOWS ? now_ns : LOOKED_NS);
	held_add(window, J, K, now_ns);
	held_add(window, K, I, now_ns);
	held_add(window, L, M, now_ns);
	held_add(window, M, L, now_ns);
	held_add(window, TURN_B, TURN_A, now_ns);
	held_add(window, YOUNG_B, YOUNG_A, now_ns);
	held_add(window, OLDER_B, OLDER_A, now_ns);
	held_add(window, FLOCK_B, FLOCK_A, now_ns);
	for (tid = CHAIN; tid < CHAIN_END; tid++)
		held_add(window, tid, tid + 1, now_ns);
	held_add(window, CHAIN_END, 0, 0);
	window_seal(window);
	store_add(store, window);
	window_unref(window);
}

static void database_make(void)
{
	const struct store_options options = { .path = path,
					       .max_size = 64 << 20,
					       .max_age_ns = INT64_MAX / 4,
					       .tiers = { { LENGTH_NS, INT64_MAX / 4, 100 } },
					       .n_tiers = 1,
					       .boot_id = "test" };
	struct store_stats stats;
	struct store *store;
	size_t n;

	assert_int_equal(process_table_new_stored(&table), 0);
	assert_int_equal(store_start(&options, &store), 0);
	for (n = 0; n < WINDOWS; n++)
		window_write(store, n);
	do {
		usleep(1000);
		store_stats(store, &stats);
	} while (stats.written + stats.dropped_write + stats.dropped_queue < WINDOWS);
	assert_int_equal(stats.written, WINDOWS);
	store_stop(store);
}

static int set_up(void **state)
{
	struct config_error problem;
	char store[96], reason[256] = "";
	char *overrides[] = { store };

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/db", directory);
	snprintf(store, sizeof(store), "store.path=%s", path);
	database_make();
	assert_int_equal(config_load("/dev/null", overrides, 1, &config, &problem), 0);
	assert_int_equal(recorder_start(config, &recorder, reason, sizeof(reason)), 0);
	return 0;
}

static int tear_down(void **state)
{
	char command[96];

	recorder_stop(&recorder);
	config_free(config);
	process_table_free(table);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

/* What holder_find() was asked last. */
static struct {
	struct holder_question questions[HOLDER_LOOKUPS];
	size_t n;
	const char *object; /* what all of them wait for; NULL: not known */
	bool is_late;	    /* only the first one is looked up in time */
} find;

int __wrap_holder_find(const struct holder_question *questions, size_t n, enum holder_use use,
		       struct holder_answer *answers, int64_t *cpu_ns_out);

/* Says that the thread behind each one in number holds what it waits for. */
int __wrap_holder_find(const struct holder_question *questions, size_t n, enum holder_use use,
		       struct holder_answer *answers, int64_t *cpu_ns_out)
{
	size_t i;

	assert_int_equal(use, HOLDER_FOR_ANSWER);
	find.n = n;
	memcpy(find.questions, questions, n * sizeof(*questions));
	for (i = 0; i < (find.is_late ? 1 : n); i++) {
		answers[i].is_known = true;
		answers[i].n = 1;
		answers[i].object = find.object ? strdup(find.object) : NULL;
		answers[i].holders[0] = (struct holder){ PID, questions[i].tid + 1, "thread" };
	}
	return 0;
}

/* Looks up the holders of an answer's groups as if it were about the present. */
static struct aggregate_group **look_up(struct answer *answer, size_t *n_out)
{
	struct aggregate_group **groups = aggregate_groups(answer->aggregate, n_out);
	size_t i;

	for (i = 0; i < *n_out; i++)
		groups[i]->holders = NULL;
	find.n = 0;
	assert_int_equal(answer_holders_find(answer, groups, *n_out, *n_out), 0);
	return groups;
}

/* Asks about the windows up to the end of window `last`, and about thread `tid` unless that is 0.
 */
static struct answer *ask_about(bool is_open, const char *by, int64_t last, int64_t tid)
{
	static const struct query_peer root = { .is_root = true };
	struct wire_filter filter = wire_filter_absent();
	const struct wire_snapshot_request request = {
		.probe = "offcpu",
		.filter = &filter,
		.by = by,
		.window_ns = WIRE_ABSENT,
		.since_ns = REAL_NS,
		.until_ns = REAL_NS + last * LENGTH_NS,
		.open = is_open ? 1 : WIRE_BOOL_ABSENT,
		.reverse = WIRE_BOOL_ABSENT,
		.top = WIRE_ABSENT,
		.idle = 1,
		.lines = WIRE_BOOL_ABSENT,
		.addresses = WIRE_BOOL_ABSENT,
		.each_ns = WIRE_ABSENT,
		.fold_own = WIRE_BOOL_ABSENT,
	};
	struct answer *answer = NULL;

	filter.tids = (struct int_list){ .v = &tid, .n = tid != 0 };
	assert_int_equal(query_snapshot(&recorder, &root, &request, &answer, &error), 0);
	return answer;
}

static struct answer *ask(bool is_open, const char *by, int64_t last)
{
	return ask_about(is_open, by, last, 0);
}

/* Returns the row whose longest wait is that of a thread. It is valid until the next call. */
static const struct wire_row *row_of(struct answer *answer, int64_t tid)
{
	const struct wire_row *row;
	size_t i;

	for (i = 0; i < answer_n_rows(answer); i++) {
		assert_int_equal(answer_row(answer, i, &row), 0);
		if (row->max_tid == tid)
			return row;
	}
	fail_msg("no row of thread %d", (int)tid);
	return NULL;
}

static void assert_held(const struct wire_row *row, int32_t tid, int32_t holder)
{
	char object[32];

	snprintf(object, sizeof(object), "/%d", tid);
	assert_string_equal(row->object, object);
	assert_int_equal(row->holders.n, 1);
	assert_int_equal(row->holders.v[0].tid, holder);
	assert_int_equal(row->holders.v[0].pid, PID);
	assert_int_equal(row->holders_at, LOOKED_NS);
}

/* stuck, as of a moment of the past: all waits go on, and have their chains. */
static void test_waits_of_a_moment(void **state)
{
	struct answer *answer = ask(true, "thread", 2);
	const struct wire_row *row = row_of(answer, A);

	assert_int_equal(answer_n_rows(answer), TIDS_END - A);
	assert_held(row, A, B);
	assert_int_equal(row->chain.n, 2);
	assert_int_equal(row->chain.v[0].tid, B);
	assert_string_equal(row->chain.v[0].reason, "stopped");
	assert_int_equal(row->chain.v[0].for_ns, 2 * LENGTH_NS - SINCE_NS);
	assert_int_equal(row->chain.v[1].tid, C);
	assert_string_equal(row->chain.v[1].reason, "sleep");
	assert_null(row->chain.v[1].object);
	assert_int_not_equal(row->deadlock, 1);
	row = row_of(answer, D);
	assert_held(row, D, E);
	assert_int_equal(row->deadlock, 1);
	row = row_of(answer, F);
	assert_null(row->object);
	assert_int_equal(row->holders.n, 0);
	assert_int_equal(row->holders_at, WIRE_ABSENT);
	/* Nothing was to be looked up about the one that sleeps. */
	row = row_of(answer, C);
	assert_null(row->object);
	answer_free(answer);
}

/* A holder that began to wait after it was looked up may have let go before: no chain of it. */
static void test_a_holder_that_let_go(void **state)
{
	struct answer *answer = ask(true, "thread", WINDOWS);
	const struct wire_row *row = row_of(answer, G);

	assert_held(row, G, H);
	assert_int_equal(row->chain.n, 0);
	assert_int_not_equal(row->deadlock, 1);
	row = row_of(answer, H);
	assert_int_equal(row->chain.n, 1);
	assert_int_equal(row->chain.v[0].tid, G);
	assert_int_not_equal(row->deadlock, 1);
	answer_free(answer);
}

/* A ring is a deadlock once all of it was looked up while all of it waited. */
static void test_a_ring_is_looked_up_again(void **state)
{
	const struct wire_row *row;
	struct answer *answer;
	int32_t tid;
	int last;

	for (last = 2; last <= WINDOWS; last++) {
		answer = ask(true, "thread", last);
		for (tid = I; tid <= K; tid++) {
			row = row_of(answer, tid);
			assert_int_equal(row->chain.n, 2);
			assert_int_equal(row->deadlock == 1, last == WINDOWS);
		}
		answer_free(answer);
	}
}

/* A wait for events may end by a timeout, so that a ring with one is no deadlock. */
static void test_a_ring_with_events(void **state)
{
	struct answer *answer = ask(true, "thread", WINDOWS);
	const struct wire_row *row = row_of(answer, L);

	assert_int_equal(row->holders.n, 1);
	assert_int_equal(row->chain.n, 0);
	assert_int_not_equal(row->deadlock, 1);
	answer_free(answer);
}

/* The wait of A has ended by now: that it was held is known from before. */
static void test_a_wait_that_has_ended(void **state)
{
	struct answer *answer = ask(false, "line", WINDOWS);
	const struct wire_row *row;
	size_t i, n = 0;

	/* The waits of all threads for one reason are one row, with its longest wait. */
	for (i = 0; i < answer_n_rows(answer); i++) {
		assert_int_equal(answer_row(answer, i, &row), 0);
		if (!row->object)
			continue;
		n++;
		assert_int_equal(row->max_ns, WINDOWS * LENGTH_NS - SINCE_NS);
		assert_int_equal(row->holders.n, 1);
	}
	assert_true(n > 0);
	answer_free(answer);
	answer = ask(true, "thread", WINDOWS);
	for (i = 0; i < answer_n_rows(answer); i++) {
		assert_int_equal(answer_row(answer, i, &row), 0);
		assert_int_not_equal(row->max_tid, A);
	}
	answer_free(answer);
}

/* The row of all threads that wait for one reason has the holder of the longest of these waits. */
static void test_lines_of_the_present(void **state)
{
	struct answer *answer = ask(false, "line", 2);
	struct aggregate_group **groups;
	size_t n, i, n_held = 0;

	groups = look_up(answer, &n);
	assert_int_equal(find.n, 1);
	assert_int_equal(find.questions[0].pid, PID);
	assert_int_equal(find.questions[0].tid, A);
	assert_int_equal(find.questions[0].start_boot_ns, 6);
	for (i = 0; i < n; i++)
		n_held += groups[i]->holders && groups[i]->holders->n == 1;
	assert_int_equal(n_held, 1);
	answer_free(answer);
}

/*
 * The wait of a holder that the filter leaves out is that which was recorded, also in a ring. H
 * waits for a ring that it is no part of: nobody in it is the last of a chain.
 */
static void test_holders_outside_the_filter(void **state)
{
	static const struct {
		int32_t tid, next;
		size_t steps;
		bool is_deadlock;
	} cases[] = { { A, B, 2, false }, { D, E, 1, true }, { H, I, 0, false } };
	const struct group_holders *found;
	struct answer *answer;
	size_t n, i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		answer = ask_about(true, "thread", 2, cases[i].tid);
		found = look_up(answer, &n)[0]->holders;
		assert_int_equal(n, 1);
		assert_int_equal(find.n, 1);
		assert_int_equal(found->looked_ns, 0);
		assert_int_equal(found->n_steps, cases[i].steps);
		assert_int_equal(found->holders[0].tid, cases[i].next);
		if (found->n_steps) {
			assert_int_equal(found->steps[0].tid, cases[i].next);
			assert_int_equal(found->steps[0].pid, PID);
			assert_int_equal(found->steps[0].ns, 2 * LENGTH_NS - SINCE_NS);
		}
		assert_int_equal(found->is_deadlock, cases[i].is_deadlock);
		answer_free(answer);
	}
}

/* Finds the holders of a mutex that the thread of an answer about A waits for; it is called tid. */
static const struct group_holders *found_for(struct answer *answer, int32_t tid, const char *object)
{
	struct aggregate_group *group = aggregate_groups(answer->aggregate, &(size_t){ 0 })[0];

	group->tid = tid;
	group->has_reason = true;
	group->reason = REASON_MUTEX;
	find.object = object;
	return look_up(answer, &(size_t){ 0 })[0]->holders;
}

/* The last step of a chain is its end, of however many steps it is. */
static void test_the_end_of_a_long_chain(void **state)
{
	struct answer *answer = ask_about(true, "thread", 2, A);
	const struct group_holders *found = found_for(answer, CHAIN - 1, NULL);

	assert_int_equal(found->n_steps, HOLDER_STEPS);
	assert_int_equal(found->steps[0].tid, CHAIN);
	assert_int_equal(found->steps[HOLDER_STEPS - 1].tid, CHAIN_END);
	answer_free(answer);
}

/*
 * Of two threads that wait for one lock, each may have had it when the other one was looked up.
 * That is no deadlock; one for two locks is.
 */
static void test_turns_are_no_deadlock(void **state)
{
	static const char *const objects[] = { "/1056964709", "/other" };
	size_t i;

	assert_int_equal(TURN_B, 1056964709);
	for (i = 0; i < ARRAY_SIZE(objects); i++) {
		struct answer *answer = ask_about(true, "thread", 2, A);
		const struct group_holders *found = found_for(answer, TURN_A, objects[i]);

		assert_int_equal(found->holders[0].tid, TURN_B);
		assert_int_equal(found->n_steps, i);
		assert_int_equal(found->is_deadlock, i);
		answer_free(answer);
	}
}

/* A circle of waits that are young may be one of turns; one for a lock may have had it meanwhile.
 */
static void test_young_circles_are_no_deadlock(void **state)
{
	static const struct {
		int32_t tid;
		size_t steps;
		bool is_deadlock;
	} cases[] = { { YOUNG_A, 1, false }, { OLDER_A, 1, true }, { FLOCK_A, 0, false } };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct answer *answer = ask_about(true, "thread", 2, A);
		const struct group_holders *found = found_for(answer, cases[i].tid, NULL);

		assert_int_equal(found->n_steps, cases[i].steps);
		assert_int_equal(found->is_deadlock, cases[i].is_deadlock);
		answer_free(answer);
	}
}

/* Locks are looked up first, and what is idle last. */
static void test_the_order_of_look_ups(void **state)
{
	struct answer *answer = ask(true, "thread", 2);
	struct aggregate_group **groups;
	size_t n, i;

	groups = aggregate_groups(answer->aggregate, &n);
	for (i = 0; i < n; i++) {
		groups[i]->has_reason = true;
		groups[i]->reason = groups[i]->tid == F ? REASON_FLOCK : REASON_PIPE_READ;
		groups[i]->is_idle = groups[i]->tid == A;
	}
	look_up(answer, &n);
	assert_int_equal(find.n, n);
	assert_int_equal(find.questions[0].tid, F);
	assert_int_equal(find.questions[n - 1].tid, A);

	/* What one waits for now is not what it waited for longest. */
	groups[0]->count = 1;
	groups[0]->max_end_real_ns = REAL_NS;
	look_up(answer, &n);
	assert_int_equal(find.n, n - 1);
	answer_free(answer);
}

/* A wait that was not looked up in time says so, and that of a lock without an owner another thing.
 */
static void test_waits_that_are_left_out(void **state)
{
	struct answer *answer = ask(true, "thread", 2);
	struct aggregate_group **groups;
	struct stack unread = { .flags = STACK_IS_UNREAD };
	size_t n, i, left_out, missed = 0;

	groups = aggregate_groups(answer->aggregate, &n);
	for (i = 0; i < n; i++) {
		groups[i]->has_reason = true;
		groups[i]->reason = REASON_FLOCK;
	}
	find.is_late = true;
	groups = look_up(answer, &n);
	find.is_late = false;
	assert_true(find.n > 1);
	assert_int_equal(answer_holders_left(answer, groups, n, &left_out), 0);
	assert_int_equal(left_out, find.n - 1);
	for (i = 0; i < n; i++) {
		struct wire_row row = wire_row_absent();

		assert_int_equal(answer_holders_wire(answer->arena, groups[i], &row), 0);
		missed += row.holders_missed == 1;
		assert_int_equal(row.holders_missed == 1, row.holders_unknown != NULL);
	}
	assert_int_equal(missed, find.n - 1);
	groups[0]->holders = NULL;
	groups[0]->reason = REASON_FUTEX;
	assert_int_equal(answer_holders_recorded(answer, groups, n), 0);
	assert_ptr_equal(groups[0]->holders->unknown, holder_never_known(REASON_FUTEX));
	assert_false(holder_is_missed(groups[0]->holders->unknown));
	/* Of which kind a futex is, the user stack says. */
	groups[0]->user = &unread;
	groups[0]->holders = NULL;
	assert_int_equal(answer_holders_recorded(answer, groups, n), 0);
	assert_ptr_equal(groups[0]->holders->unknown, holder_unread);
	assert_true(holder_is_missed(holder_unread));
	assert_true(holder_is_missed(holder_went_on) && holder_is_missed(holder_took_too_long));
	assert_false(holder_is_missed(NULL));
	answer_free(answer);
}

/* A row of all waits of a thread has the holders of the longest, if all are for one reason. */
static void test_threads_of_a_range(void **state)
{
	struct answer *answer = ask(false, "thread", WINDOWS);
	const struct wire_row *row = row_of(answer, A);
	size_t n;

	assert_non_null(row->reason);
	assert_non_null(row->object);
	assert_int_equal(row->holders.n, 1);
	assert_true(row->holders_at > 0);
	row = row_of(answer, B);
	assert_null(row->reason);
	assert_null(row->object);
	assert_int_equal(row->holders.n, 0);
	look_up(answer, &n);
	assert_true(find.n > 0);
	for (size_t i = 0; i < find.n; i++)
		assert_true(find.questions[i].tid != B);
	answer_free(answer);
}

/* Rows that are sums over several reasons or threads have no object of their own. */
static void test_sums_have_none(void **state)
{
	static const char *const by[] = { "process", "comm", "reason", "unit" };
	const struct wire_row *row;
	size_t i, k;

	for (k = 0; k < ARRAY_SIZE(by); k++) {
		struct answer *answer = ask(false, by[k], WINDOWS);

		assert_true(answer_n_rows(answer) > 0);
		for (i = 0; i < answer_n_rows(answer); i++) {
			assert_int_equal(answer_row(answer, i, &row), 0);
			assert_null(row->object);
		}
		answer_free(answer);
	}
}

/* stuck uses the last window of its range only, so what others lost does not matter. */
static void test_losses_are_those_of_the_moment(void **state)
{
	struct answer *answer = ask(true, "thread", 2);

	assert_int_equal(answer->reply.snapshot.lost.n, 1);
	assert_int_equal(answer->reply.snapshot.lost.v[0].count, 2);
	answer_free(answer);
	answer = ask(false, "thread", 2);
	assert_int_equal(answer->reply.snapshot.lost.v[0].count, 1 + 2);
	answer_free(answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_of_a_moment),
		cmocka_unit_test(test_losses_are_those_of_the_moment),
		cmocka_unit_test(test_a_holder_that_let_go),
		cmocka_unit_test(test_a_ring_is_looked_up_again),
		cmocka_unit_test(test_a_ring_with_events),
		cmocka_unit_test(test_a_wait_that_has_ended),
		cmocka_unit_test(test_lines_of_the_present),
		cmocka_unit_test(test_holders_outside_the_filter),
		cmocka_unit_test(test_the_end_of_a_long_chain),
		cmocka_unit_test(test_turns_are_no_deadlock),
		cmocka_unit_test(test_young_circles_are_no_deadlock),
		cmocka_unit_test(test_the_order_of_look_ups),
		cmocka_unit_test(test_threads_of_a_range),
		cmocka_unit_test(test_waits_that_are_left_out),
		cmocka_unit_test(test_sums_have_none),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/proto/fake_query.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/arena.h"
#include "common/base.h"
#include "daemon/query/query.h"
#include "tests/proto/refusing_query.h"

enum { LARGE_NAME = 150 * 1024 };

static const int64_t a_time = 1700000000 * NS_PER_S;

struct answer {
	struct recorder *recorder;
	struct arena *arena;
	union wire_reply reply;
	size_t n_rows;
	struct arena *step; /* memory of the rows that were made */
};

static struct answer *answer_new(struct recorder *recorder)
{
	struct answer *answer = calloc(1, sizeof(*answer));

	if (!answer)
		return NULL;
	answer->recorder = recorder;
	answer->arena = arena_new();
	if (!answer->arena) {
		free(answer);
		return NULL;
	}
	atomic_fetch_add(&recorder->answers, 1);
	return answer;
}

struct answer *answer_free(struct answer *answer)
{
	if (!answer)
		return NULL;
	atomic_fetch_sub(&answer->recorder->answers, 1);
	arena_free(answer->step);
	arena_free(answer->arena);
	free(answer);
	return NULL;
}

void answer_freep(struct answer **answer)
{
	*answer = answer_free(*answer);
}

static const struct wire_stack *stack_make(struct arena *arena, size_t row, size_t name_size)
{
	struct wire_stack *stack = arena_alloc(arena, sizeof(*stack));
	struct wire_frame *frames = arena_array(arena, FAKE_FRAMES, sizeof(*frames));

	for (size_t i = 0; i < FAKE_FRAMES; i++) {
		char *name = arena_alloc(arena, name_size + 64);

		memset(name, 'n', name_size);
		snprintf(name + name_size, 64, "function_%zu_of_%zu", i, row);
		frames[i] = (struct wire_frame){
			.kind = "native",
			.name = name,
			.offset = (int64_t)i,
			.module = "/usr/lib/x86_64-linux-gnu/libc.so.6",
			.file_offset = WIRE_ABSENT,
			.file_address = WIRE_ABSENT,
			.address = arena_printf(arena, "0x%zx", 0x7f0000000000 + row * 64 + i),
		};
	}
	stack->id = arena_printf(arena, "%016zx", row);
	stack->frames = (struct wire_frames){ frames, FAKE_FRAMES };
	return stack;
}

static void row_make(struct arena *arena, const char *probe, size_t i, struct wire_row *row)
{
	bool is_large = strcmp(probe, FAKE_LARGE) == 0 && i == 1;
	const char *comm =
		strcmp(probe, FAKE_BYTES) == 0 ? "a\xff\xc0\x80\xed\xa0\x80\n\"" : "comm";

	*row = (struct wire_row){
		.process = { .pid = (int64_t)i + 1, .start = a_time, .comm = comm },
		.tid = (int64_t)i + 1,
		.comm = comm,
		.state = "S",
		.count = (int64_t)i,
		.max_end = a_time + (int64_t)i,
		.max_tid = WIRE_ABSENT,
		.kernel = stack_make(arena, i, 0),
		.user = stack_make(arena, i, is_large ? LARGE_NAME : 0),
	};
}

static int refuse(struct wire_error *error, const char *probe)
{
	*error = (struct wire_error){
		.code = ERROR_UNKNOWN_PROBE,
		.what = strdup(probe),
		.limit = WIRE_ABSENT,
		.message = strdup("there is no such probe"),
	};
	return -ENOENT;
}

static int is_known(const char *probe)
{
	static const char *const known[] = { FAKE_PROBE, FAKE_SLOW, FAKE_BYTES, FAKE_LARGE,
					     FAKE_LATER };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(known[i], probe) == 0)
			return 1;
	return 0;
}

static int wait_until_gone(struct recorder *recorder, const struct query_peer *peer)
{
	const struct timespec pause = { .tv_nsec = NS_PER_MS };

	while (!atomic_load(peer->is_gone))
		nanosleep(&pause, NULL);
	atomic_fetch_add(&recorder->cancelled, 1);
	return -ECANCELED;
}

int query_snapshot(struct recorder *recorder, const struct query_peer *peer, const void *params,
		   struct answer **out, struct wire_error *error)
{
	const struct wire_snapshot_request *request = params;
	const struct timespec delay = { .tv_nsec = 300 * NS_PER_MS };
	size_t n = request->top == WIRE_ABSENT ? 1 : (size_t)request->top;
	struct answer *answer;

	atomic_fetch_add(&recorder->snapshots, 1);
	if (strcmp(request->probe, FAKE_BROKEN) == 0)
		return -EIO;
	if (strcmp(request->probe, FAKE_ENDLESS) == 0)
		return wait_until_gone(recorder, peer);
	if (!is_known(request->probe))
		return refuse(error, request->probe);
	if (strcmp(request->probe, FAKE_SLOW) == 0)
		nanosleep(&delay, NULL);
	if (strcmp(request->probe, FAKE_LATER) == 0 && atomic_load(&recorder->is_held)) {
		*peer->again_ns = clock_ns(CLOCK_MONOTONIC) + NS_PER_MS;
		return -ERESTART;
	}
	answer = answer_new(recorder);
	if (!answer)
		return -ENOMEM;
	answer->reply.snapshot = (struct wire_snapshot_reply){
		.probe = arena_strdup(answer->arena, request->probe),
		.session = "offcpu",
		.hook = peer->is_root ? "root" : "other",
		.min_wait_ns = request->window_ns == WIRE_ABSENT ? 0 : request->window_ns,
		.coverage = { .asked = { a_time, a_time }, .used = { a_time, a_time } },
		.totals = { .threads = (int64_t)n },
	};
	answer->n_rows = n;
	*out = answer;
	return 0;
}

int query_windows(struct recorder *recorder, const struct query_peer *peer, const void *params,
		  struct answer **out, struct wire_error *error)
{
	struct answer *answer = answer_new(recorder);
	size_t n = (size_t)recorder->windows;
	struct wire_window *windows;

	if (!answer)
		return -ENOMEM;
	windows = arena_array(answer->arena, n, sizeof(*windows));
	for (size_t i = 0; i < n; i++)
		windows[i] =
			(struct wire_window){ .seq = (int64_t)i, .start = a_time, .end = a_time };
	answer->reply.windows.windows = (struct wire_windows){ windows, n };
	*out = answer;
	return 0;
}

int query_status(struct recorder *recorder, const struct query_peer *peer, const void *params,
		 struct answer **out, struct wire_error *error)
{
	static const struct wire_limit limits[] = { { "keys", 100, 50, 1, NULL, NULL } };
	struct answer *answer = answer_new(recorder);

	if (!answer)
		return -ENOMEM;
	answer->reply.status = (struct wire_status_reply){
		.version = "fake",
		.started = a_time,
		.boot_id = "b",
		.kernel = "k",
		.oldest = WIRE_ABSENT,
		.newest = WIRE_ABSENT,
		.limits = { limits, ARRAY_SIZE(limits) },
	};
	*out = answer;
	return 0;
}

int query_metrics(struct recorder *recorder, const struct query_peer *peer, const void *params,
		  struct answer **out, struct wire_error *error)
{
	*out = answer_new(recorder);
	return *out ? 0 : -ENOMEM;
}

int query_probes(struct recorder *recorder, const struct query_peer *peer, const void *params,
		 struct answer **out, struct wire_error *error)
{
	*out = answer_new(recorder);
	return *out ? 0 : -ENOMEM;
}

int query_settled(struct recorder *recorder, const struct query_peer *peer, const void *params,
		  struct answer **out, struct wire_error *error)
{
	const struct wire_settled_request *request = params;

	*out = answer_new(recorder);
	if (!*out)
		return -ENOMEM;
	(*out)->reply.settled.settled = request->pid == 1;
	(*out)->reply.settled.comm = "fake";
	return 0;
}

int query_sessions(struct recorder *recorder, const struct query_peer *peer, const void *params,
		   struct answer **out, struct wire_error *error)
{
	*out = answer_new(recorder);
	return *out ? 0 : -ENOMEM;
}

const union wire_reply *answer_reply(const struct answer *answer)
{
	return &answer->reply;
}

size_t answer_n_rows(const struct answer *answer)
{
	return answer->n_rows;
}

int answer_row(struct answer *answer, size_t i, const struct wire_row **out)
{
	struct wire_row *row;

	if (!answer->step)
		answer->step = arena_new();
	row = arena_alloc(answer->step, sizeof(*row));
	row_make(answer->step, answer->reply.snapshot.probe, i, row);
	atomic_fetch_add(&answer->recorder->rows, 1);
	*out = row;
	return 0;
}

void answer_rows_sent(struct answer *answer, size_t n)
{
	answer->step = arena_free(answer->step);
}

static int session_begin(struct recorder *recorder, struct answer **out)
{
	struct answer *answer = answer_new(recorder);

	if (!answer)
		return -ENOMEM;
	atomic_fetch_add(&recorder->begun, 1);
	answer->reply.start = (struct wire_start_reply){
		.session = { .id = "100",
			     .probe = FAKE_BEGINS,
			     .owner = "root",
			     .since = a_time,
			     .until = WIRE_ABSENT,
			     .ended = WIRE_ABSENT,
			     .min_wait_ns = WIRE_ABSENT,
			     .period_ns = WIRE_ABSENT,
			     .count = WIRE_ABSENT,
			     .regexp = WIRE_BOOL_ABSENT,
			     .functions = WIRE_ABSENT,
			     .calls_per_s = WIRE_ABSENT,
			     .load = WIRE_ABSENT,
			     .every = WIRE_ABSENT,
			     .rate = WIRE_ABSENT,
			     .held = WIRE_ABSENT },
		.missed = WIRE_ABSENT,
	};
	*out = answer;
	return 0;
}

int query_start(struct recorder *recorder, const struct query_peer *peer, const void *params,
		struct answer **out, struct wire_error *error)
{
	const struct wire_start_request *request = params;
	bool begins = strcmp(request->probe, FAKE_BEGINS) == 0;
	bool is_slow = begins || strcmp(request->probe, FAKE_SLOW) == 0;
	const struct timespec pause = { .tv_nsec = 5 * NS_PER_MS };

	atomic_fetch_add(&recorder->starting, 1);
	while (is_slow && atomic_load(&recorder->is_held))
		nanosleep(&pause, NULL);
	atomic_fetch_sub(&recorder->starting, 1);
	return begins ? session_begin(recorder, out) : query_refuse(error);
}

void answer_start_give_up(struct answer *answer)
{
	atomic_fetch_add(&answer->recorder->given_up, 1);
}

bool answer_start_runs(const struct answer *answer)
{
	return atomic_load(&answer->recorder->is_running);
}

struct query_follow {
	struct recorder *recorder;
	struct query_peer peer;
	char *probe;
	bool is_told;
};

int query_follow_new(struct recorder *recorder, const struct query_peer *peer,
		     const struct wire_follow_request *request, struct query_follow **out,
		     struct wire_error *error)
{
	struct query_follow *follow = calloc(1, sizeof(*follow));

	follow->recorder = recorder;
	follow->peer = *peer;
	follow->probe = strdup(request->probe);
	*out = follow;
	return 0;
}

bool query_follow_is_due(const struct query_follow *follow)
{
	return !follow->is_told;
}

/* Returns one answer of two rows, or of very many with FAKE_DEEP, and never another. */
int query_follow_next(struct query_follow *follow, struct answer **out, struct wire_error *error)
{
	bool is_deep = strcmp(follow->probe, FAKE_DEEP) == 0;
	struct wire_snapshot_request request = { .probe = is_deep ? FAKE_PROBE : follow->probe,
						 .top = is_deep ? 50000 : 2 };
	int r;

	if (follow->is_told)
		return 0;
	r = query_snapshot(follow->recorder, &follow->peer, &request, out, error);
	if (r)
		return r;
	follow->is_told = true;
	(*out)->reply.snapshot.cursor = "1";
	return 1;
}

struct query_follow *query_follow_free(struct query_follow *follow)
{
	if (follow)
		free(follow->probe);
	free(follow);
	return NULL;
}

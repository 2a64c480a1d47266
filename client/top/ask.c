/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/top/ask.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/base/term.h"
#include "client/call/call.h"
#include "client/option/options.h"
#include "common/base.h"
#include "proto/codec.h"

struct top_ask {
	const struct options *options;
	pthread_t thread;
	int fd;
	bool is_busy;
	int64_t since_ns;
	struct top_answer *answer; /* of the thread while is_busy */
};

struct top_answer *top_answer_free(struct top_answer *answer)
{
	if (!answer)
		return NULL;
	free(answer->waits.rows);
	free(answer->samples.rows);
	free(answer->io.rows);
	/* The three collections share an arena. */
	arena_free(answer->waits.arena);
	free(answer->message);
	free(answer);
	return NULL;
}

static struct top_answer *answer_new(const struct top_question *question)
{
	struct top_answer *answer = must(calloc(1, sizeof(*answer)));
	struct arena *arena = must(arena_new());

	answer->question = *question;
	answer->waits.arena = answer->samples.arena = answer->io.arena = arena;
	return answer;
}

/* Adds a reply to the collection of its probe. To be used as a reply_handler. */
static int answer_add(const struct varlink_message *message, void *context)
{
	struct top_answer *answer = context;
	struct collection *collection = &answer->waits;
	struct wire_snapshot_reply reply;
	int r = snapshot_reply_decode(message, answer->waits.arena, &reply, NULL);

	if (r < 0)
		return r;
	if (reply_is_iolat(&reply))
		collection = &answer->io;
	else if (reply_is_sampled(&reply))
		collection = &answer->samples;
	return collection_add_reply(collection, &reply);
}

/* The filter of a question, with what it points to. */
struct filter {
	struct wire_filter wire;
	int64_t pid;
};

/* True if the question is about one process, whatever the tab is. */
static bool is_of_process(const struct top_question *question)
{
	return question->purpose == TOP_WAKERS || question->purpose == TOP_STACKS;
}

static void filter_fill(const struct options *options, const struct top_question *question,
			struct filter *out)
{
	out->pid = question->pid;
	out->wire = wire_filter_absent();
	out->wire.comm = question->comm[0]	     ? question->comm
			 : question->state.filter[0] ? question->state.filter
						     : NULL;
	out->wire.hosts = (struct wire_strs){ options->hosts.v, options->hosts.n };
	out->wire.pids = (struct int_list){ &out->pid, question->pid > 0 };
}

static struct wire_span span_of(const struct top_question *question)
{
	const struct top_state *state = &question->state;

	if (question->purpose != TOP_ROWS)
		return question->span;
	if (state->since_ns)
		return (struct wire_span){ state->since_ns, state->until_ns };
	return (struct wire_span){ WIRE_ABSENT, WIRE_ABSENT };
}

static void overview_encode(const struct options *options, const struct top_question *question,
			    struct text *out)
{
	const struct wire_span span = span_of(question);
	struct wire_overview_request request = wire_overview_request_absent();
	struct filter filter;

	filter_fill(options, question, &filter);
	if (span.since_ns == WIRE_ABSENT)
		request.window_ns = question->window_ns;
	request.since_ns = span.since_ns;
	request.until_ns = span.until_ns;
	request.filter = &filter.wire;
	request.top = question->top;
	request.idle = question->state.has_idle;
	/* The time of I/O is a part of the other times, and not in their picture. */
	request.io = question->state.tab == TAB_OVERVIEW && question->purpose == TOP_ROWS;
	if (question->purpose == TOP_ROWS) {
		request.by = "line";
		request.fold_own = 1;
	}
	overview_request_encode(&request, VARLINK_MORE, out);
}

/* True if one row for stackd's own threads is enough: rows stand for threads or processes. */
static bool is_of_threads(const char *by)
{
	return by && (strcmp(by, "stack") == 0 || strcmp(by, "thread") == 0 ||
		      strcmp(by, "process") == 0 || strcmp(by, "comm") == 0);
}

static void rows_encode(const struct options *options, const struct top_question *question,
			struct text *out)
{
	static const char *const probes[TABS] = {
		[TAB_BLOCKED] = "offcpu",
		[TAB_ON_CPU] = "oncpu",
		[TAB_IO] = "iolat",
		[TAB_STUCK] = "offcpu",
	};
	const struct top_state *state = &question->state;
	const struct wire_span span = span_of(question);
	bool is_of_wakers = question->purpose == TOP_WAKERS,
	     is_stuck = state->tab == TAB_STUCK && !is_of_process(question);
	const char *by = question->purpose == TOP_ROWS ? top_group(state) : "stack",
		   *sort = top_sort(state);
	struct wire_snapshot_request request = wire_snapshot_request_absent();
	struct filter filter;

	if (is_of_wakers || (question->purpose == TOP_PICTURE && state->tab == TAB_IO))
		by = NULL;
	else if (is_stuck && strcmp(by, "stack") == 0)
		by = "thread";
	else if (state->tab == TAB_IO)
		by = strcmp(by, "process") == 0 ? "process" : NULL;
	if (question->purpose == TOP_STACKS)
		sort = NULL;
	if (state->tab == TAB_ON_CPU && by && strcmp(by, "reason") == 0)
		by = NULL;
	filter_fill(options, question, &filter);
	request.probe = is_of_wakers			  ? "offwake"
			: question->purpose == TOP_STACKS ? question->probe
							  : probes[state->tab];
	if (span.since_ns == WIRE_ABSENT)
		request.window_ns = question->window_ns;
	request.since_ns = span.since_ns;
	request.until_ns = span.until_ns;
	request.filter = &filter.wire;
	if (is_stuck)
		request.open = 1;
	request.by = by;
	request.sort = is_stuck ? "max" : sort;
	request.top = question->top;
	request.idle = state->has_idle || is_of_wakers;
	if (is_of_threads(by) && question->purpose == TOP_ROWS)
		request.fold_own = 1;
	snapshot_request_encode(&request, VARLINK_MORE, out);
}

static void *ask_main(void *arg)
{
	struct top_ask *ask = arg;
	struct top_answer *answer = ask->answer;
	const struct top_question *question = &answer->question;
	bool is_overview = !is_of_process(question) && (question->state.tab == TAB_OVERVIEW ||
							question->state.tab == TAB_RUNNABLE);
	uint64_t one = 1;
	struct text text;

	text_init(&text, VARLINK_MAX_REPLY);
	if (is_overview)
		overview_encode(ask->options, question, &text);
	else
		rows_encode(ask->options, question, &text);
	answer->is_nothing = call_quiet(ask->options, &text, answer_add, answer,
					&answer->message) == EXIT_CODE_NO_DATA;
	text_fini(&text);
	if (write(ask->fd, &one, sizeof(one)) < 0)
		abort(); /* an eventfd takes a 1 at any time */
	return NULL;
}

struct top_ask *top_ask_new(const struct options *options)
{
	/* Static, as its thread may still use it while the program ends. */
	static struct top_ask ask;

	ask.options = options;
	ask.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ask.fd < 0)
		must(NULL);
	return &ask;
}

int top_ask_fd(const struct top_ask *ask)
{
	return ask->fd;
}

bool top_ask_is_busy(const struct top_ask *ask)
{
	return ask->is_busy;
}

int64_t top_ask_since(const struct top_ask *ask)
{
	return ask->since_ns;
}

int top_ask_begin(struct top_ask *ask, const struct top_question *question)
{
	int r;

	ask->answer = answer_new(question);
	r = pthread_create(&ask->thread, NULL, ask_main, ask);
	if (r) {
		ask->answer = top_answer_free(ask->answer);
		return -r;
	}
	ask->is_busy = true;
	ask->since_ns = clock_ns(CLOCK_MONOTONIC);
	return 0;
}

struct top_answer *top_ask_take(struct top_ask *ask)
{
	uint64_t n;

	pthread_join(ask->thread, NULL);
	if (read(ask->fd, &n, sizeof(n)) < 0)
		n = 0; /* it was read before */
	ask->is_busy = false;
	return TAKE(ask->answer);
}

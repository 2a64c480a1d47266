/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A request on its whole way: parsed, decoded, its filter checked, answered, the answer encoded.
 * Every reply must be one that a client can read. The first byte says who asks.
 */
#include <errno.h>
#include <string.h>

#include "daemon/filter.h"
#include "daemon/query.h"
#include "daemon/service.h"
#include "proto/arena.h"
#include "proto/base.h"
#include "proto/codec.h"
#include "tests/fuzz/fuzz.h"

enum { STEPS_MAX = 100 };

/* Stage 6: filters are checked as the daemon does; the rows are the request's own words. */
struct answer {
	struct arena *arena;
	struct wire_snapshot_reply snapshot;
	struct wire_windows_reply windows;
	struct wire_status_reply status;
	struct wire_probes_reply probes;
	struct wire_sessions_reply sessions;
};

static struct answer *answer_new(void)
{
	struct answer *answer = calloc(1, sizeof(*answer));

	REQUIRE(answer);
	answer->arena = arena_new();
	REQUIRE(answer->arena);
	return answer;
}

struct answer *answer_free(struct answer *answer)
{
	if (!answer)
		return NULL;
	arena_free(answer->arena);
	free(answer);
	return NULL;
}

void answer_freep(struct answer **answer)
{
	*answer = answer_free(*answer);
}

int query_snapshot(struct recorder *recorder, const struct query_peer *peer,
		   const struct wire_snapshot_request *request, struct answer **out,
		   struct wire_error *error)
{
	const struct wire_filter *wire = request->filter;
	struct answer *answer;
	struct wire_row *row;
	struct filter filter;
	int r = filter_init(&filter, wire, error);

	if (r < 0)
		return r;
	answer = answer_new();
	row = arena_alloc(answer->arena, sizeof(*row));
	*row = (struct wire_row){
		.process = { .comm = arena_strdup(answer->arena, request->probe) },
		.comm = wire && wire->comm ? arena_strdup(answer->arena, wire->comm) : "",
		.state = "S",
		.tid = request->top,
		.max_end = request->until_ns,
		.max_tid = WIRE_ABSENT,
	};
	answer->snapshot = (struct wire_snapshot_reply){
		.probe = row->process.comm,
		.hook = "",
		.rows = { row, 1 },
	};
	*out = answer;
	return 0;
}

int query_windows(struct recorder *recorder, const struct wire_windows_request *request,
		  struct answer **out, struct wire_error *error)
{
	*out = answer_new();
	return 0;
}

int query_status(struct recorder *recorder, struct answer **out)
{
	*out = answer_new();
	(*out)->status.version = (*out)->status.boot_id = (*out)->status.kernel = "";
	return 0;
}

int query_probes(struct recorder *recorder, struct answer **out)
{
	*out = answer_new();
	return 0;
}

int query_sessions(struct recorder *recorder, struct answer **out)
{
	*out = answer_new();
	return 0;
}

const struct wire_snapshot_reply *answer_snapshot(const struct answer *answer)
{
	return &answer->snapshot;
}

const struct wire_windows_reply *answer_windows(const struct answer *answer)
{
	return &answer->windows;
}

const struct wire_status_reply *answer_status(const struct answer *answer)
{
	return &answer->status;
}

const struct wire_probes_reply *answer_probes(const struct answer *answer)
{
	return &answer->probes;
}

const struct wire_sessions_reply *answer_sessions(const struct answer *answer)
{
	return &answer->sessions;
}

/* Whether it is one message, and one that says that more follow where they do. */
static void reply_check(const struct text *reply, bool is_last)
{
	struct varlink_message *message;

	if (reply->len == 0)
		return;
	REQUIRE(reply->len <= VARLINK_MAX_REPLY);
	REQUIRE(memchr(reply->data, '\0', reply->len) == reply->data + reply->len - 1);
	REQUIRE(varlink_reply_parse(reply->data, reply->len - 1, &message) == 0);
	REQUIRE(message->continues == !is_last);
	varlink_message_free(message);
}

static void exchange(const struct server_handler *handler, struct server_peer *peer,
		     const char *text, size_t len)
{
	void *call;
	int r = handler->begin(handler->userdata, peer, text, len, &call);

	if (r < 0)
		return;
	r = 1;
	for (int i = 0; r > 0; i++) {
		struct text out;

		REQUIRE(i < STEPS_MAX);
		text_init(&out, SIZE_MAX);
		r = handler->step(call, &out);
		REQUIRE(r >= 0);
		reply_check(&out, r == 0);
		text_fini(&out);
	}
	handler->end(call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct service_groups groups = { .query = NULL, .control = NULL };
	struct server_peer peer = { .uid = 0 };
	struct server_handler handler;
	struct service *service;
	char *text;

	if (size < 1)
		return 0;
	peer.uid = data[0] % 2 ? 4711 : 0;
	REQUIRE(service_new(NULL, &groups, &service) == 0);
	handler = service_handler(service);
	text = fuzz_string(data + 1, size - 1);
	/* a frame ends at its first NUL */
	exchange(&handler, &peer, text, strlen(text));
	free(text);
	service_free(service);
	return 0;
}

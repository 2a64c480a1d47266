/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/service/internal.h"

#define ANSWER_TIME_NS (600 * NS_PER_S)

static void group_find(const char *name, struct service_group *out)
{
	gid_t gid = 0;
	int r = name && name[0] ? server_group_find(name, &gid) : -ENOENT;

	if (r && r != -ENOENT)
		log_err(r, "cannot find the group '%s', so its members are refused", name);
	*out = (struct service_group){ name, r == 0, gid };
}

int service_new(struct recorder *recorder, const struct service_groups *groups,
		struct service **out)
{
	struct service *service = calloc(1, sizeof(*service));

	if (!service)
		return -ENOMEM;
	service->recorder = recorder;
	service->answer_time_ns = ANSWER_TIME_NS;
	admission_init(&service->admission);
	pthread_mutex_init(&service->slow.lock, NULL);
	group_find(groups->query, &service->groups[METHOD_QUERY]);
	group_find(groups->control, &service->groups[METHOD_CONTROL]);
	*out = service;
	return 0;
}

struct service *service_free(struct service *service)
{
	if (!service)
		return NULL;
	admission_fini(&service->admission);
	pthread_mutex_destroy(&service->slow.lock);
	free(service);
	return NULL;
}

void service_set_server(struct service *service, struct server *server)
{
	service->server = server;
}

void service_set_limits(struct service *service, const struct admission_limits *limits)
{
	admission_set_limits(&service->admission, limits);
}

static void exchange_free(struct exchange *exchange)
{
	if (!exchange)
		return;
	if (exchange->is_bound) {
		answer_start_end(exchange->answer);
		atomic_store(&exchange->peer->is_bound, false);
	}
	query_follow_free(exchange->follow);
	answer_free(exchange->answer);
	stacks_sent_free(exchange->sent);
	arena_free(exchange->arena);
	varlink_message_free(exchange->call);
	place_leave(exchange);
	free(exchange);
}

static void exchange_freep(struct exchange **exchange)
{
	exchange_free(*exchange);
}

static int on_begin(void *userdata, struct server_peer *peer, const char *message, size_t len,
		    void **exchange_out)
{
	_cleanup_(exchange_freep) struct exchange *exchange = calloc(1, sizeof(*exchange));
	int r;

	if (!exchange)
		return -ENOMEM;
	exchange->service = userdata;
	exchange->peer = peer;
	exchange->arena = arena_new();
	if (!exchange->arena)
		return -ENOMEM;
	r = varlink_call_parse(message, len, &exchange->call);
	if (r < 0)
		return r;
	exchange->method = method_find(exchange->call->method);
	*exchange_out = TAKE(exchange);
	return 0;
}

/*
 * Checks the peer's groups. The mode of the socket file limits who can connect, too, but an
 * administrator may have changed it by accident.
 */
enum method_class method_refused(const struct service *service, const struct server_peer *peer,
				 enum method_class class)
{
	if (peer->uid == 0 || peer->uid == geteuid())
		return METHOD_OPEN;
	for (enum method_class i = METHOD_QUERY; i <= class; i++) {
		const struct service_group *group = &service->groups[i];

		if (!group->is_known || !server_peer_in_group(peer, group->gid))
			return i;
	}
	return METHOD_OPEN;
}

static bool is_interface(const char *name, size_t len)
{
	static const char *const ours[] = { "io.stackd", "org.varlink.service" };

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (strlen(ours[i]) == len && memcmp(ours[i], name, len) == 0)
			return true;
	return false;
}

static int reply_unknown(struct exchange *exchange, struct text *out)
{
	const char *name = exchange->call->method;
	const char *dot = strrchr(name, '.');
	char *interface;

	if (!dot || is_interface(name, (size_t)(dot - name)))
		return reply_error(ERROR_METHOD_NOT_FOUND, name, out);
	interface = arena_strndup(exchange->arena, name, (size_t)(dot - name));
	if (!interface)
		return -ENOMEM;
	return reply_error(ERROR_INTERFACE_NOT_FOUND, interface, out);
}

/*
 * Decodes the parameters of the call. Returns 0; -EINVAL with *error filled if a parameter is
 * wrong; or -ENOMEM.
 */
static int request_decode(struct exchange *exchange, struct codec_error *error)
{
	const struct wire_method *wire = exchange->method->wire;

	if (!wire->request || exchange->request)
		return 0;
	return method_request_decode(wire, exchange->call, exchange->arena, &exchange->request,
				     error);
}

/* Appends the error Busy because of the setting with this name. */
static int reply_busy(const char *setting, struct text *out)
{
	struct wire_error error = { .limit = WIRE_ABSENT };

	wire_error_set(&error, -EBUSY, ERROR_BUSY, setting,
		       "stackd is busy with as many answers as %s allows; ask again later",
		       setting);
	return reply_query_error(&error, out);
}

/*
 * Makes the first step of an exchange (a call and its replies): decodes the request, calls the
 * query and appends the first reply. Returns the same values as method.reply. If the call has to
 * wait for others, or the query to be made again later, appends nothing and returns SERVER_WAIT. If
 * it has waited for others for too long, appends the error Busy.
 */
static int exchange_begin(struct exchange *exchange, struct text *out)
{
	const struct method *method = exchange->method;
	struct wire_error error = { .limit = WIRE_ABSENT };
	struct query_peer peer = query_peer_of(exchange);
	struct codec_error codec_error;
	const char *limit = NULL;
	int r;

	if (method->needs_more && !exchange->call->more)
		return reply_error(ERROR_EXPECTED_MORE, NULL, out);
	if (clock_ns(CLOCK_MONOTONIC) < exchange->again_ns)
		return SERVER_WAIT;
	r = request_decode(exchange, &codec_error);
	if (r == -EINVAL)
		return reply_error(ERROR_INVALID_PARAMETER, codec_error.parameter, out);
	if (r == 0 && method->has_place)
		r = place_take(exchange, &limit);
	if (r == SERVER_WAIT || r == -EBUSY)
		return r == SERVER_WAIT ? r : reply_busy(limit, out);
	if (r == 0 && method->query)
		r = method->query(exchange->service->recorder, &peer, exchange->request,
				  &exchange->answer, &error);
	/* Others are not kept waiting meanwhile, neither for a thread nor for a place. */
	if (r == -ERESTART) {
		place_leave(exchange);
		return SERVER_WAIT;
	}
	if (r < 0)
		return error.code ? reply_query_error(&error, out) : r;
	exchange->has_begun = true;
	return method->reply ? method->reply(exchange, out) : reply_answer(exchange, out);
}

/*
 * Makes the first step of a call to a slow method. If slow_begin() has no place for it, does
 * nothing and returns SERVER_WAIT.
 */
static int exchange_begin_slow(struct exchange *exchange, struct text *out)
{
	struct slow_calls *slow = &exchange->service->slow;
	struct slow_call *call = slow_begin(slow, exchange->peer->uid);
	int r;

	if (!call)
		return SERVER_WAIT;
	r = exchange_begin(exchange, out);
	slow_end(slow, call);
	return r;
}

static int exchange_reply(struct exchange *exchange, struct text *out)
{
	enum method_class refused;

	if (!exchange->method)
		return reply_unknown(exchange, out);
	refused = method_refused(exchange->service, exchange->peer, exchange->method->class);
	if (refused != METHOD_OPEN)
		return reply_refused(exchange->service, refused, out);
	if (exchange->has_begun)
		return exchange->method->reply(exchange, out);
	if (exchange->method->is_slow)
		return exchange_begin_slow(exchange, out);
	return exchange_begin(exchange, out);
}

static int on_step(void *userdata, struct text *out)
{
	struct exchange *exchange = userdata;
	int r;

	out->limit = VARLINK_MAX_REPLY;
	r = exchange_reply(exchange, out);
	if (r == SERVER_WAIT && !exchange->has_begun)
		return r;
	/* The client has hung up, so it gets no reply. */
	if (r == -ECANCELED)
		return r;
	if (r < 0) {
		text_reset(out);
		r = reply_failed(exchange, r, out);
	}
	admission_reply_end(&exchange->service->admission, &exchange->place, out->len);
	if (!exchange->call->oneway)
		return r;
	text_reset(out);
	return 0;
}

static void on_end(void *userdata, bool is_written)
{
	struct exchange *exchange = userdata;

	if (exchange->is_unconfirmed && !is_written)
		answer_start_give_up(exchange->answer);
	exchange_free(exchange);
}

struct server_handler service_handler(struct service *service)
{
	return (struct server_handler){
		.userdata = service,
		.begin = on_begin,
		.step = on_step,
		.end = on_end,
	};
}

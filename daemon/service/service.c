/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/service/internal.h"
#include "daemon/service/loop.h"

/*
 * To put programs into the kernel and to take them out are what takes long, and it is done on the
 * pool's threads: of these some are left to answer who only asks.
 */
enum { SLOW_AT_ONCE = LOOP_WORKERS / 2 };

static void group_find(const char *name, struct service_group *out)
{
	gid_t gid = 0;
	int r = name ? server_group_find(name, &gid) : -ENOENT;

	if (r && r != -ENOENT)
		log_err(r, "find the group '%s': its members are refused", name);
	*out = (struct service_group){ name, r == 0, gid };
}

int service_new(struct recorder *recorder, const struct service_groups *groups,
		struct service **out)
{
	struct service *service = calloc(1, sizeof(*service));

	if (!service)
		return -ENOMEM;
	service->recorder = recorder;
	group_find(groups->query, &service->groups[METHOD_QUERY]);
	group_find(groups->control, &service->groups[METHOD_CONTROL]);
	*out = service;
	return 0;
}

struct service *service_free(struct service *service)
{
	free(service);
	return NULL;
}

void service_set_server(struct service *service, struct server *server)
{
	service->server = server;
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
	arena_free(exchange->arena);
	varlink_message_free(exchange->call);
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

/* The mode of the socket says the same of those who ask, but can be changed by accident. */
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

int reply_refused(const struct service *service, enum method_class class, struct text *out)
{
	const char *name = service->groups[class].name;

	return reply_error(ERROR_PERMISSION_DENIED, name ? name : "root", out);
}

int reply_error(enum wire_error_code code, const char *what, struct text *out)
{
	const struct wire_error error = { .code = code, .what = what };

	return varlink_error_encode(&error, out);
}

int reply_query_error(struct wire_error *error, struct text *out)
{
	int r = varlink_error_encode(error, out);

	wire_error_clear(error);
	return r;
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

/* One that finds too many others comes again. */
static int exchange_begin_slow(struct exchange *exchange, struct text *out)
{
	atomic_int *slow = &exchange->service->slow;
	int r = SERVER_WAIT;

	if (atomic_fetch_add(slow, 1) < SLOW_AT_ONCE)
		r = exchange->method->handle(exchange, out);
	atomic_fetch_sub(slow, 1);
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
	if (exchange->method->is_slow && !exchange->answer)
		return exchange_begin_slow(exchange, out);
	return exchange->method->handle(exchange, out);
}

static int reply_failed(const struct exchange *exchange, int reason, struct text *out)
{
	const struct wire_error error = {
		.code = ERROR_FAILED,
		.what = exchange->call->method,
		.message = strerrordesc_np(-reason),
	};

	log_err(reason, "cannot answer %s", exchange->call->method);
	return varlink_error_encode(&error, out);
}

static int on_step(void *userdata, struct text *out)
{
	struct exchange *exchange = userdata;
	int r;

	out->limit = VARLINK_MAX_REPLY;
	r = exchange_reply(exchange, out);
	/* It has not begun. */
	if (r == SERVER_WAIT && exchange->method->is_slow && !exchange->answer)
		return r;
	if (r < 0) {
		text_reset(out);
		r = reply_failed(exchange, r, out);
	}
	if (!exchange->call->oneway)
		return r;
	text_reset(out);
	return 0;
}

static void on_end(void *userdata, bool is_written)
{
	struct exchange *exchange = userdata;

	if (exchange->is_untold && !is_written)
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/internal.h"

#include <errno.h>
#include <string.h>

#include "daemon/base/log.h"

struct query_peer query_peer_of(struct exchange *exchange)
{
	return (struct query_peer){
		.is_root = exchange->peer->uid == 0,
		.uid = exchange->peer->uid,
		.is_gone = &exchange->peer->is_gone,
		.again_ns = exchange->has_begun ? NULL : &exchange->again_ns,
	};
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

int reply_refused(const struct service *service, enum method_class class, struct text *out)
{
	const char *name = service->groups[class].name;

	return reply_error(ERROR_PERMISSION_DENIED, name && name[0] ? name : "root", out);
}

int reply_failed(const struct exchange *exchange, int reason, struct text *out)
{
	const struct wire_error error = {
		.code = ERROR_FAILED,
		.what = exchange->call->method,
		.message = strerrordesc_np(-reason),
	};

	log_err(reason, "cannot answer %s", exchange->call->method);
	return varlink_error_encode(&error, out);
}

int reply_answer(struct exchange *exchange, struct text *out)
{
	return method_reply_encode(exchange->method->wire, answer_reply(exchange->answer), 0, out);
}

int reply_answer_or_refuse(struct exchange *exchange, struct text *out)
{
	int r = reply_answer(exchange, out);

	if (r != -EMSGSIZE)
		return r;
	text_reset(out);
	return reply_error(ERROR_EXPECTED_MORE, NULL, out);
}

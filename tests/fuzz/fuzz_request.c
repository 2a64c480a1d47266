/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes all that is done with a request: it is parsed and decoded, its filter is checked, and an
 * answer is encoded. A client must be able to read each reply. The first byte chooses the user.
 */
#include <errno.h>
#include <string.h>

#include "daemon/service/service.h"
#include "proto/codec.h"
#include "tests/fuzz/fuzz.h"

enum { STEPS_MAX = 100 };

/* True if the text is one reply, which continues if and only if more replies follow. */
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
	handler->end(call, true);
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
	/* A message ends at its first NUL. */
	exchange(&handler, &peer, text, strlen(text));
	free(text);
	service_free(service);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes the decoding of replies. The first byte says which reply is expected. A snapshot that was
 * decoded can be encoded, and is then decoded to the same.
 */
#include <string.h>

#include "common/arena.h"
#include "common/base.h"
#include "proto/codec.h"
#include "tests/fuzz/fuzz.h"

static void snapshot_check(const struct varlink_message *message, struct arena *arena)
{
	struct wire_snapshot_reply reply;
	struct varlink_message *again;
	struct text out, out_again;

	if (snapshot_reply_decode(message, arena, &reply, NULL) < 0)
		return;
	text_init(&out, SIZE_MAX);
	text_init(&out_again, SIZE_MAX);
	REQUIRE(snapshot_reply_encode(&reply, 0, &out) == 0);
	REQUIRE(varlink_reply_parse(out.data, out.len - 1, &again) == 0);
	REQUIRE(snapshot_reply_decode(again, arena, &reply, NULL) == 0);
	REQUIRE(snapshot_reply_encode(&reply, 0, &out_again) == 0);
	REQUIRE(out.len == out_again.len && memcmp(out.data, out_again.data, out.len) == 0);
	text_fini(&out);
	text_fini(&out_again);
	varlink_message_free(again);
}

static void decode(unsigned int kind, const struct varlink_message *message, struct arena *arena)
{
	union {
		struct wire_status_reply status;
		struct wire_probes_reply probes;
		struct wire_sessions_reply sessions;
		struct wire_windows_reply windows;
		struct wire_error error;
	} reply;
	struct codec_error error;

	switch (kind % 6) {
	case 0:
		snapshot_check(message, arena);
		break;
	case 1:
		status_reply_decode(message, arena, &reply.status, &error);
		break;
	case 2:
		probes_reply_decode(message, arena, &reply.probes, &error);
		break;
	case 3:
		sessions_reply_decode(message, arena, &reply.sessions, &error);
		break;
	case 4:
		windows_reply_decode(message, arena, &reply.windows, &error);
		break;
	default:
		varlink_error_decode(message, arena, &reply.error);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct varlink_message *message;
	struct arena *arena;
	char *text;

	if (size < 1)
		return 0;
	text = fuzz_string(data + 1, size - 1);
	if (varlink_reply_parse(text, strlen(text), &message) == 0) {
		arena = arena_new();
		REQUIRE(arena);
		decode(data[0], message, arena);
		arena_free(arena);
		varlink_message_free(message);
	}
	free(text);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdint.h>

#include "client/render/render.h"
#include "proto/codec.h"

int render_json(FILE *out, const struct wire_snapshot_reply *reply, bool is_pretty)
{
	struct text text;
	int r;

	text_init(&text, SIZE_MAX);
	r = snapshot_reply_print(reply, is_pretty, &text);
	if (r == 0) {
		fwrite(text.data, 1, text.len, out);
		fputc('\n', out);
	}
	text_fini(&text);
	return r;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/openwait_reader.h"

#include <errno.h>
#include <stdlib.h>

struct probe_reader {
	const struct probe *probe; /* borrowed; used only until the BPF program is loaded */
	struct probe_openwait *openwait;
};

static int on_open(void *userdata, char reason[static OPENWAIT_REASON])
{
	struct probe_reader *reader = userdata;

	return probe_openwait_open(reader->probe, &reader->openwait, reason);
}

static int64_t on_run(void *userdata, const struct openwait_pass *pass)
{
	struct probe_reader *reader = userdata;

	return probe_openwait_run(reader->openwait, pass);
}

static void on_counts(void *userdata, struct openwait_counts *out, uint64_t lost_out[LOST_N],
		      uint32_t *reading_tgid_out)
{
	const struct probe_reader *reader = userdata;

	probe_openwait_counts(reader->openwait, out, lost_out, reading_tgid_out);
}

static void on_program(void *userdata, struct probe_program *out)
{
	const struct probe_reader *reader = userdata;

	probe_openwait_program(reader->openwait, out);
}

static void on_free(void *userdata)
{
	struct probe_reader *reader = userdata;

	probe_openwait_close(reader->openwait);
	free(reader);
}

int openwait_reader_of(const struct probe *probe, struct openwait_reader **out)
{
	static const struct openwait_ops ops = {
		.open = on_open,
		.run = on_run,
		.counts = on_counts,
		.program = on_program,
		.free = on_free,
	};
	struct probe_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	reader->probe = probe;
	return openwait_reader_start(&ops, reader, out);
}

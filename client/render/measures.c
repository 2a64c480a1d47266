/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/measures.h"

#include <string.h>

#include "client/render/parts.h"
#include "client/render/render.h"
#include "common/base.h"

static int64_t count(const struct wire_row *row)
{
	return row->count;
}

static int64_t total(const struct wire_row *row)
{
	return row->total_ns;
}

static int64_t runnable(const struct wire_row *row)
{
	return parts[1].time(row);
}

static int64_t throttled(const struct wire_row *row)
{
	return parts[2].time(row);
}

static int64_t blocked(const struct wire_row *row)
{
	return parts[3].time(row);
}

int64_t measure_io_time(const struct wire_row *row)
{
	if (!row->io || strcmp(row->io->layer, "block") == 0)
		return 0;
	return row->io->own_ns;
}

static const struct measure of_waits[] = {
	{ "waits", "count", NULL, count },
	{ "blocked", "nanoseconds", NULL, blocked },
	{ "runnable", "nanoseconds", NULL, runnable },
	{ "throttled", "nanoseconds", NULL, throttled },
};

static const struct measure of_samples[] = {
	{ "samples", "count", NULL, count },
	{ "cpu", "nanoseconds", NULL, total },
};

static const struct measure of_calls[] = {
	{ "calls", "count", NULL, count },
};

static const struct measure of_io[] = {
	{ "operations", "count", NULL, count },
	{ "io", "nanoseconds", NULL, measure_io_time },
};

static const struct measure of_overview[] = {
	{ "samples", "count", "oncpu", count },
	{ "cpu", "nanoseconds", "oncpu", total },
	{ "waits", "count", "offcpu", count },
	{ "blocked", "nanoseconds", "offcpu", blocked },
	{ "runnable", "nanoseconds", "offcpu", runnable },
	{ "throttled", "nanoseconds", "offcpu", throttled },
};

#define MEASURES(array, number) \
	((struct measures){ .v = (array), .n = ARRAY_SIZE(array), .main = (number) })

struct measures measures_of(const struct wire_snapshot_reply *reply, bool is_overview)
{
	if (is_overview)
		return MEASURES(of_overview, 3);
	if (reply_is_iolat(reply))
		return MEASURES(of_io, 1);
	if (reply_has_calls(reply))
		return MEASURES(of_calls, 0);
	if (reply_is_sampled(reply))
		return MEASURES(of_samples, 1);
	return MEASURES(of_waits, 1);
}

int64_t measure_value(const struct measure *measure, const char *probe, const struct wire_row *row)
{
	return measure->probe && strcmp(measure->probe, probe) != 0 ? 0 : measure->value(row);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/overview.h"
#include "client/call/snapshot_run.h"
#include "client/verb/verb.h"

enum exit_code cmd_snapshot(struct options *options)
{
	if (!options->argument || options->argument[0] == '\0')
		return overview_run(options);
	if (options->ranges.n > 0)
		return ranges_run(options, options->argument);
	if (options->each_ns != WIRE_ABSENT)
		return slices_run(options, options->argument);
	return snapshot_run(options, options->argument, false);
}

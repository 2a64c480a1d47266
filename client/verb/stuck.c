/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/snapshot_run.h"
#include "client/verb/verb.h"

enum exit_code cmd_stuck(struct options *options)
{
	return snapshot_run(options, "offcpu", true);
}

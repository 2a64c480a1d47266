/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/top/top.h"
#include "client/verb/verb.h"

enum exit_code cmd_top(struct options *options)
{
	return top_run(options);
}

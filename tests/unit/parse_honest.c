/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process that starts workers, as the daemon runs it, for test_parse.c. */
#include "daemon/parse/worker.h"
#include "daemon/parse/zygote.h"

int main(void)
{
	return zygote_main(worker_run);
}

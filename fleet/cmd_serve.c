/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/serve/gateway.h"
#include "fleet/verb.h"

int cmd_serve(const struct fleet_config *config, const struct fleet_options *options)
{
	return gateway_run(config) < 0 ? FLEET_EXIT_FAILED : FLEET_EXIT_OK;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_RELOAD_H
#define STACKD_DAEMON_CONFIG_RELOAD_H

/*
 * Settings read a second time: in come those that hold and those read anew, the former take over
 * what may change while stackd runs, and each difference is told. Called by main.
 */

#include <stdbool.h>

#include "daemon/config/config.h"

/* value is as a file would have it; is_applied: it holds from now on, else from the next start. */
typedef void (*config_on_change)(void *userdata, const char *section, const char *key,
				 const char *value, bool is_applied);

/*
 * Only whole numbers change, each written at once, so that other threads may go on reading.
 * Returns how many were applied; -ENOMEM, with those before it applied.
 */
int config_reload(struct config *config, const struct config *fresh, config_on_change on_change,
		  void *userdata);

#endif

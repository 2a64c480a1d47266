/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_RELOAD_H
#define STACKD_DAEMON_CONFIG_RELOAD_H

/*
 * Applies settings that were read again: the running settings take over the changes that may be
 * made while stackd runs, and every difference is reported to the caller. Called by the daemon's
 * main thread.
 */

#include <stdbool.h>

#include "daemon/config/config.h"

/*
 * Reports one changed setting. value is its new value, as it is written in a file. is_applied: the
 * change holds from now on; otherwise it takes a restart.
 */
typedef void (*config_on_change)(void *userdata, const char *section, const char *key,
				 const char *value, bool is_applied);

/*
 * Copies the settings that may change from fresh to config, and calls on_change for each setting
 * that differs. Returns how many were applied, or -ENOMEM, when only the first ones may be applied.
 */
int config_reload(struct config *config, const struct config *fresh, config_on_change on_change,
		  void *userdata);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_CONFIG_RELOAD_H
#define STACKD_DAEMON_CONFIG_RELOAD_H

/*
 * Applies settings that were read again: changes the running settings where that is possible while
 * stackd runs, and reports every difference to the caller. Called by the daemon's main thread.
 */

#include <stdbool.h>

#include "daemon/config/config.h"

/*
 * Reports one changed setting. `value` is the new value, in the form that a configuration file has.
 * is_applied is true if the change is effective now, false if stackd must be restarted for it.
 */
typedef void (*config_on_change)(void *userdata, const char *section, const char *key,
				 const char *value, bool is_applied);

/*
 * Copies settings from `fresh` to `config` if they can change while stackd runs. Calls on_change
 * for each setting whose two values differ. Returns the number of settings that were applied, or
 * -ENOMEM, in which case only some of them were applied.
 */
int config_reload(struct config *config, const struct config *fresh, config_on_change on_change,
		  void *userdata);

#endif

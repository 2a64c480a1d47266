/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/base/notify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <systemd/sd-daemon.h>

#include "common/base.h"
#include "daemon/base/log.h"

_Static_assert(NOTIFY_FDS_START == SD_LISTEN_FDS_START, "the first passed descriptor");

/* Sends a state. The first of several failures is logged: $NOTIFY_SOCKET may be a parent's. */
static void notify_send(const char *state)
{
	static atomic_bool has_failed;
	int r = sd_notify(0, state);

	if (r < 0 && !atomic_load(&has_failed))
		log_err(r, "notify the service manager of %s", state);
	atomic_store(&has_failed, r < 0);
}

void notify_ready(void)
{
	notify_send("READY=1");
}

void notify_status(const char *format, ...)
{
	char state[512] = "STATUS=";
	const size_t start = strlen(state);
	va_list args;

	va_start(args, format);
	vsnprintf(state + start, sizeof(state) - start, format, args);
	va_end(args);
	notify_send(state);
}

void notify_reloading(void)
{
	char state[64];

	/*
	 * With Type=notify-reload, systemd needs the time at which this reload began, to
	 * distinguish it from an earlier one.
	 */
	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
		 clock_ns(CLOCK_MONOTONIC) / NS_PER_US);
	notify_send(state);
}

void notify_stopping(void)
{
	notify_send("STOPPING=1");
}

void notify_watchdog(void)
{
	notify_send("WATCHDOG=1");
}

int64_t notify_watchdog_ns(void)
{
	uint64_t us;

	if (sd_watchdog_enabled(0, &us) <= 0 || us > INT64_MAX / NS_PER_US)
		return 0;
	return (int64_t)us * NS_PER_US;
}

int notify_listen_fds(void)
{
	return sd_listen_fds(1);
}

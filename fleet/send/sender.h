/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_SEND_SENDER_H
#define STACKD_FLEET_SEND_SENDER_H

/* Sends what the daemon of this host has and the server has not. Main thread. */

#include <signal.h>
#include <stdint.h>

#include "fleet/base/config.h"

struct sender;

/* What was sent since the start. */
struct sender_stats {
	uint64_t windows;
	uint64_t gaps;
	uint64_t rows;
	uint64_t stacks;
	uint64_t bytes; /* of rows and stacks, before they are compressed */
	/* the start of the last stretch of which windows are not sent, see plan.lost; 0: none */
	int64_t lost_since_ns;
};

/*
 * Makes a sender, which borrows the config. *stop becomes true when it has to end. Returns 0 or a
 * negative errno with *error.
 */
int sender_new(const struct fleet_config *config, const volatile sig_atomic_t *stop,
	       struct sender **out, struct fleet_error *error);
void sender_freep(struct sender **sender);

/*
 * Sends all that is missing. Returns 0; -EINTR if *stop became true; or another negative errno with
 * *error. A later call goes on from what the server has then.
 */
int sender_round(struct sender *sender, struct fleet_error *error);

const struct sender_stats *sender_stats(const struct sender *sender);

#endif

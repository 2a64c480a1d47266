/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_BUILD_SAMPLES_H
#define STACKD_DAEMON_WINDOW_BUILD_SAMPLES_H

/*
 * Makes windows of samples: in come the rows of one cut, out comes a window in which each thread
 * has its image and its time. Remembers nothing. Owned by the drain and used on its thread only.
 */

#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/process/process.h"
#include "daemon/window/stack.h"
#include "daemon/window/window.h"

struct sampler;

/* Windows are of this kind. period_ns: the time one sample stands for; 0 of calls. */
int sampler_new(enum probe_kind kind, struct process_table *processes, struct stack_table *stacks,
		uint64_t period_ns, struct sampler **out);
struct sampler *sampler_free(struct sampler *sampler);

/* One cut: every row, then finish. The window is the caller's; NULL when out of memory. */
void sampler_add(struct sampler *sampler, const struct sample_key *key,
		 const struct sample_sums *sums);
struct window *sampler_finish(struct sampler *sampler, int64_t start_ns, int64_t end_ns);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_OPENWAIT_H
#define STACKD_DAEMON_PROBE_OPENWAIT_H

/*
 * The program that reads the user stacks of waits that go on: in comes an off-CPU probe whose maps
 * it uses, out go stacks through that probe's ring. It may sleep for long, as long as a process
 * that hangs does. Owned by the thread that runs it, but for the counts, which any may read.
 */

#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/probe/probe.h"

struct probe_openwait;

enum { OPENWAIT_REASON = 192 };

/* What one pass over all threads is to read. */
struct openwait_pass {
	uint32_t epoch;	    /* of the open window */
	uint64_t min_ns;    /* waits at least so old */
	uint64_t max_looks; /* stacks at most */
};

/*
 * The probe may be closed before this is: the maps stay. Negative errno, with what the kernel
 * refused in reason.
 */
int probe_openwait_open(const struct probe *probe, struct probe_openwait **out,
			char reason[static OPENWAIT_REASON]);
struct probe_openwait *probe_openwait_close(struct probe_openwait *openwait);

/* Returns when all threads were looked at: the stacks read, or a negative errno. */
int64_t probe_openwait_run(struct probe_openwait *openwait, const struct openwait_pass *pass);

/* What the kernel says of the program. */
void probe_openwait_program(const struct probe_openwait *openwait, struct probe_program *out);

/* Also while a pass runs; reading_tgid_out: whose memory is being read, 0 for nobody's. */
void probe_openwait_counts(const struct probe_openwait *openwait, struct openwait_counts *out,
			   uint64_t lost_out[LOST_N], uint32_t *reading_tgid_out);

#endif

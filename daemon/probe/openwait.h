/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_OPENWAIT_H
#define STACKD_DAEMON_PROBE_OPENWAIT_H

/*
 * The program that reads the user stacks of waits that have not ended. It uses the maps of an
 * off-CPU probe and sends the stacks through that probe's ring. It may sleep for as long as the
 * process hangs whose memory it reads. Owned by the thread that runs it; any thread may read the
 * counts.
 */

#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/probe/probe.h"

struct probe_openwait;

enum { OPENWAIT_REASON = 192 };

/* The limits of one pass over all threads. */
struct openwait_pass {
	uint32_t epoch;	    /* number of the open window */
	uint64_t min_ns;    /* least age of a wait */
	uint64_t max_looks; /* most stacks that are read */
};

/*
 * Loads and attaches the program. The probe may be closed before it: the maps stay. 0, or negative
 * errno with the kernel's refusal in reason.
 */
int probe_openwait_open(const struct probe *probe, struct probe_openwait **out,
			char reason[static OPENWAIT_REASON]);
struct probe_openwait *probe_openwait_close(struct probe_openwait *openwait);

/* Visits all threads. Returns the number of stacks that were read, or negative errno. */
int64_t probe_openwait_run(struct probe_openwait *openwait, const struct openwait_pass *pass);

/* Reads what the kernel knows about the program. */
void probe_openwait_program(const struct probe_openwait *openwait, struct probe_program *out);

/* Reads the counts, also while a pass runs. *reading_tgid_out: the process whose memory is being
 * read; 0: none. */
void probe_openwait_counts(const struct probe_openwait *openwait, struct openwait_counts *out,
			   uint64_t lost_out[LOST_N], uint32_t *reading_tgid_out);

#endif

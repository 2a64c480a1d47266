/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_OPENWAIT_H
#define STACKD_DAEMON_PROBE_OPENWAIT_H

/*
 * The BPF program that reads the user stacks of waits that have not ended. It uses the maps of an
 * off-CPU probe and sends the stacks through that probe's ring buffer. If a process hangs while the
 * program reads its memory, the program sleeps for as long. Owned by the thread that runs it; any
 * thread may read the counts.
 */

#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/probe/probe.h"

struct probe_openwait;

enum { OPENWAIT_REASON = 192 };

/* The limits of one pass, which is one visit of the BPF program to all threads. */
struct openwait_pass {
	uint32_t epoch;	    /* number of the open window */
	uint64_t min_ns;    /* minimum length of a wait whose stack is read, in ns */
	uint64_t max_looks; /* maximum number of stacks that the pass reads */
};

/*
 * Loads and attaches the program. The probe may be closed before the program: the maps that both
 * use remain. 0, or a negative errno with the kernel's error in `reason`.
 */
int probe_openwait_open(const struct probe *probe, struct probe_openwait **out,
			char reason[static OPENWAIT_REASON]);
struct probe_openwait *probe_openwait_close(struct probe_openwait *openwait);

/*
 * Runs one pass over all threads. Returns the number of stacks that were read, or a negative errno.
 */
int64_t probe_openwait_run(struct probe_openwait *openwait, const struct openwait_pass *pass);

/* Fills *out with the kernel's data about the program, such as its run time. */
void probe_openwait_program(const struct probe_openwait *openwait, struct probe_program *out);

/*
 * Reads the counts of stacks and losses; may be called while a pass runs. Sets *reading_tgid_out to
 * the process whose memory is being read, or to 0.
 */
void probe_openwait_counts(const struct probe_openwait *openwait, struct openwait_counts *out,
			   uint64_t lost_out[LOST_N], uint32_t *reading_tgid_out);

#endif

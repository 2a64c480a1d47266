/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_OPENWAIT_H
#define STACKD_DAEMON_PROBE_OPENWAIT_H

/*
 * The BPF program that reads the user stacks of waits that have not ended. It uses the maps of an
 * off-CPU probe and sends the stacks through that probe's ring buffer. If the program reads the
 * memory of a process that hangs, it sleeps until the process goes on. Owned by the thread that
 * calls probe_openwait_run(). The counts may be read on any thread.
 */

#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/probe/probe.h"

struct probe_openwait;

enum { OPENWAIT_REASON = 192 };

/* The limits of one pass, which is one visit of the BPF program to all threads. */
struct openwait_pass {
	uint32_t epoch;	     /* number of the open window */
	uint32_t lost_epoch; /* as in struct cut */
	uint64_t min_ns;     /* minimum length of a wait whose stack is read, in ns */
	uint64_t max_looks;  /* maximum number of user stacks that the pass reads */
};

/*
 * Loads and attaches the program. 0, or a negative errno and the kernel's error in `reason`. The
 * program keeps the maps that it shares with the probe, so the caller may close the probe first.
 */
int probe_openwait_open(const struct probe *probe, struct probe_openwait **out,
			char reason[static OPENWAIT_REASON]);
struct probe_openwait *probe_openwait_close(struct probe_openwait *openwait);

/*
 * Runs one pass over all threads. Returns the number of stacks that were read, or a negative errno.
 */
int64_t probe_openwait_run(struct probe_openwait *openwait, const struct openwait_pass *pass);

/* Fills *out with the kernel's data about the BPF program, such as its run time. */
void probe_openwait_program(const struct probe_openwait *openwait, struct probe_program *out);

/*
 * Stores in *out how many stacks were read, and in lost_out how many records were lost. Sets
 * *reading_tgid_out to the process whose memory is being read, or to 0. May be called during a
 * pass.
 */
void probe_openwait_counts(const struct probe_openwait *openwait, struct openwait_counts *out,
			   uint64_t lost_out[LOST_N], uint32_t *reading_tgid_out);

#endif

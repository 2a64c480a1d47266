/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_OPENWAIT_READER_H
#define STACKD_DAEMON_DRAIN_OPENWAIT_READER_H

/*
 * Reads the user stacks of open waits (waits that have not ended) before a cut: takes requests for
 * a pass over all threads, and has a BPF program send the stacks through the probe's ring. Has a
 * thread of its own, which a hanging process may hold up for good: so callers wait for a pass no
 * longer than their timeout, and nothing else depends on the thread. Owned by the drain.
 */

#include <stdbool.h>
#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/probe/openwait.h"

struct openwait_reader;

/* The program is loaded when the first pass is requested; the reader is off until then. */
enum openwait_state { OPENWAIT_OFF, OPENWAIT_LOADING, OPENWAIT_ON, OPENWAIT_FAILED };

struct openwait_stats {
	enum openwait_state state;
	char reason[OPENWAIT_REASON]; /* why loading failed */
	uint64_t passes;
	uint64_t max_looks;  /* the most stacks read in one pass */
	uint64_t late;	     /* requests whose timeout ran out before the pass had ended */
	int64_t pass_max_ns; /* the longest pass, including one in progress */
	uint32_t held_up_by; /* the pid whose memory it has been reading for over a second, or 0 */
	struct openwait_counts counts;
	struct probe_program program; /* set while state is OPENWAIT_ON */
	uint64_t lost[LOST_N];	      /* records that the ring had no room for */
};

/*
 * The program behind a reader; tests bring their own. open() and run() are called on the reader's
 * thread, the others on any.
 */
struct openwait_ops {
	int (*open)(void *userdata, char reason[static OPENWAIT_REASON]);
	int64_t (*run)(void *userdata, const struct openwait_pass *pass);
	void (*counts)(void *userdata, struct openwait_counts *out, uint64_t lost_out[LOST_N],
		       uint32_t *reading_tgid_out);
	void (*program)(void *userdata, struct probe_program *out);
	void (*free)(void *userdata);
};

/* Starts the thread. Owns userdata from now on, even if it fails: ops->free() frees it. */
int openwait_reader_start(const struct openwait_ops *ops, void *userdata,
			  struct openwait_reader **out);

/* Ends the thread. If it hangs for longer than timeout_ns, it is left to end on its own. */
struct openwait_reader *openwait_reader_stop(struct openwait_reader *reader, int64_t timeout_ns);

/*
 * Requests a pass, and waits up to timeout_ns (0: not at all) for a pass that began after this call
 * to end. False if none has ended by then.
 */
bool openwait_reader_pass(struct openwait_reader *reader, const struct openwait_pass *pass,
			  int64_t timeout_ns);

void openwait_reader_stats(struct openwait_reader *reader, struct openwait_stats *out);

/*
 * Starts a reader for a probe of offcpu. The probe must stay open until the first pass has begun or
 * the reader has been stopped.
 */
int openwait_reader_of(const struct probe *probe, struct openwait_reader **out);

#endif

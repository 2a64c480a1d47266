/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_OPENWAIT_READER_H
#define STACKD_DAEMON_DRAIN_OPENWAIT_READER_H

/*
 * Has the user stacks of waits that go on read before a cut: in come requests for a pass, out go
 * stacks into the probe's ring. A thread of its own, which a process that hangs may hold up for
 * good: nobody waits for it longer than told to, and nothing else depends on it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/probe/openwait.h"

struct openwait_reader;

/* Off until a pass is asked for. */
enum openwait_state { OPENWAIT_OFF, OPENWAIT_LOADING, OPENWAIT_ON, OPENWAIT_FAILED };

struct openwait_stats {
	enum openwait_state state;
	char reason[OPENWAIT_REASON]; /* why it failed */
	uint64_t passes;
	uint64_t max_looks;  /* most stacks read in one pass */
	uint64_t late;	     /* requests that were not waited for to the end */
	int64_t pass_max_ns; /* the longest pass, one that goes on included */
	uint32_t held_up_by; /* pid whose memory is read for more than a second now, or 0 */
	struct openwait_counts counts;
	struct probe_program program; /* where it is on */
	uint64_t lost[LOST_N];	      /* that the ring did not take */
};

/* What the reader does; tests have their own. Those that run it are called on its thread. */
struct openwait_ops {
	int (*open)(void *userdata, char reason[static OPENWAIT_REASON]);
	int64_t (*run)(void *userdata, const struct openwait_pass *pass);
	void (*counts)(void *userdata, struct openwait_counts *out, uint64_t lost_out[LOST_N],
		       uint32_t *reading_tgid_out);
	void (*program)(void *userdata, struct probe_program *out);
	void (*free)(void *userdata);
};

/* Takes userdata over, also when it fails: ops->free() ends it. */
int openwait_reader_start(const struct openwait_ops *ops, void *userdata,
			  struct openwait_reader **out);

/* Ends the thread; one that does not end within timeout_ns ends by itself, when it can. */
struct openwait_reader *openwait_reader_stop(struct openwait_reader *reader, int64_t timeout_ns);

/*
 * Asks for a pass; waits until one that began after the call has ended. timeout_ns 0: does not
 * wait. False when it has not ended by then.
 */
bool openwait_reader_pass(struct openwait_reader *reader, const struct openwait_pass *pass,
			  int64_t timeout_ns);

void openwait_reader_stats(struct openwait_reader *reader, struct openwait_stats *out);

/* The reader of a probe; the probe must stay open until its first pass has begun or it is stopped.
 */
int openwait_reader_of(const struct probe *probe, struct openwait_reader **out);

#endif

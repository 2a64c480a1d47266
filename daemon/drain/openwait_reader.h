/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_OPENWAIT_READER_H
#define STACKD_DAEMON_DRAIN_OPENWAIT_READER_H

/*
 * Reads the user stacks of open waits (waits that have not ended) shortly before a window ends. On
 * request, runs a BPF program that visits all threads (a pass) and sends the stacks through the
 * probe's ring buffer. Reading the memory of a process that hangs may block for ever. Therefore the
 * reader has a thread of its own, and callers wait for a pass only up to their timeout. Owned by
 * the drain.
 */

#include <stdbool.h>
#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/probe/openwait.h"

struct openwait_reader;

/*
 * The state of the reader's BPF program. OPENWAIT_OFF until the first request, at which the program
 * is loaded.
 */
enum openwait_state { OPENWAIT_OFF, OPENWAIT_LOADING, OPENWAIT_ON, OPENWAIT_FAILED };

struct openwait_stats {
	enum openwait_state state;
	char reason[OPENWAIT_REASON]; /* why the program could not be loaded */
	uint64_t passes;	      /* number of passes over all threads that have ended */
	uint64_t max_looks;  /* largest number of stacks read in one pass over all threads */
	uint64_t late;	     /* number of requests that were not done within their timeout */
	int64_t pass_max_ns; /* duration in ns of the longest pass, which may be the one in progress
			      */
	uint32_t held_up_by; /* pid of a process whose memory has been read for over a second now;
				0: none */
	struct openwait_counts counts;
	struct probe_program program; /* data about the BPF program; set if it is loaded */
	uint64_t lost[LOST_N];	      /* number of records lost, by reason (enum loss) */
};

/*
 * The operations on the reader's BPF program; tests replace them. open() loads the program. run()
 * makes one pass over all threads and returns the number of stacks read, or a negative errno. These
 * two are called on the reader's thread, the others on any thread.
 */
struct openwait_ops {
	int (*open)(void *userdata, char reason[static OPENWAIT_REASON]);
	int64_t (*run)(void *userdata, const struct openwait_pass *pass);
	void (*counts)(void *userdata, struct openwait_counts *out, uint64_t lost_out[LOST_N],
		       uint32_t *reading_tgid_out);
	void (*program)(void *userdata, struct probe_program *out);
	void (*free)(void *userdata);
};

/*
 * Makes a reader and starts its thread. Takes over userdata: ops->free() frees it, even if the
 * reader cannot be started. 0, or a negative errno.
 */
int openwait_reader_start(const struct openwait_ops *ops, void *userdata,
			  struct openwait_reader **out);

/*
 * Ends the reader's thread and drops the reader. If the thread does not end within timeout_ns,
 * because it hangs in another process, it is detached.
 */
struct openwait_reader *openwait_reader_stop(struct openwait_reader *reader, int64_t timeout_ns);

/*
 * Requests a pass over all threads. If timeout_ns is not 0, waits until this pass has ended, but at
 * most for that time. True if the pass has ended.
 */
bool openwait_reader_pass(struct openwait_reader *reader, const struct openwait_pass *pass,
			  int64_t timeout_ns);

void openwait_reader_stats(struct openwait_reader *reader, struct openwait_stats *out);

/*
 * Makes the reader of an offcpu probe and starts its thread. The probe must stay open until the
 * reader's BPF program is loaded or the reader has been stopped. 0, or a negative errno.
 */
int openwait_reader_of(const struct probe *probe, struct openwait_reader **out);

#endif

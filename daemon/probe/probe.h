/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_PROBE_H
#define STACKD_DAEMON_PROBE_PROBE_H

/*
 * One instance of a probe's programs in the kernel: opened, loaded and attached as the running
 * kernel allows. In come settings and a filter, out come map fds for the drain and what there is
 * to say in `status`. Owned by a session; opened on any thread, afterwards read by any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/int_list.h"
#include "daemon/base/probe_kind.h"
#include "daemon/config/config.h"

struct broker;
struct io_slot;
struct probe;
struct probe_unwind;
struct call_pace;
struct cut;
struct session_filter;
struct targets;
struct thread;

enum { PROBE_MAX_PROGRAMS = 128, PROBE_MAX_BLIND = 8 };

struct probe_program {
	const char *name;
	const char *hook;
	uint64_t runs; /* only while kernel.bpf_stats_enabled is set */
	uint64_t run_ns;
	uint64_t missed; /* recursion_misses: not run because one was running */
	uint32_t verified_insns;
};

struct probe_status {
	const char *hook; /* where stacks are taken, NULL when off */
	bool is_on;
	bool is_disabled;   /* by the settings */
	const char *reason; /* why not, or why not a better hook; NULL where there is none */
	const char *blind[PROBE_MAX_BLIND]; /* what this hook cannot see */
	size_t n_blind;
	size_t n_programs;
	struct probe_program programs[PROBE_MAX_PROGRAMS];
};

/* Borrowed until the probe is closed. What is of another kind of probe is not looked at. */
struct probe_options {
	enum probe_kind kind;
	const struct config *config;
	struct broker *broker;		     /* may be NULL */
	const struct probe_unwind *unwind;   /* likewise */
	uint64_t hash_seed;		     /* one for all probes: a stack has one id */
	bool is_disabled;		     /* by the settings: gives a probe that is off */
	bool is_small;			     /* maps of an ad-hoc session */
	bool follows_processes;		     /* tells of fork, exec and exit; offcpu always does */
	uint64_t max_keys;		     /* of one window */
	const struct session_filter *filter; /* NULL: everything */
	const struct int_list *pids;	     /* with the filter; NULL or empty: any */
	const struct int_list *tids;
	int64_t min_wait_ns; /* of waits */
	/* oncpu: */
	uint64_t period_ns;
	const struct int_list *cpus; /* NULL or empty: all */
	bool with_cycles;	     /* where the hardware counts them, else in time */
	bool with_idle;
	const struct targets *targets; /* of calls */
	uint64_t rate;		       /* of stacksnoop: calls streamed a second */
};

/*
 * Whether this process may use BPF on this kernel: 0, or -EPERM or -EOPNOTSUPP with one line in
 * reason (size bytes) that says what to do. To be asked before anything is opened.
 */
int probe_check(char *reason, size_t size);

/*
 * Opens, loads and attaches. Returns 0 with a probe also when the kernel refuses it: then it is
 * off and probe_status() says why. -EPERM when the kernel refuses BPF tracing as such, with one
 * line in reason (size bytes); -ENOMEM.
 */
int probe_open(const struct probe_options *options, struct probe **out, char *reason, size_t size);

/* Detaches everything; the maps stay readable until probe_close(). */
void probe_detach(struct probe *probe);
struct probe *probe_close(struct probe *probe);

bool probe_is_on(const struct probe *probe);
enum probe_kind probe_kind(const struct probe *probe);
void probe_status(const struct probe *probe, struct probe_status *out);

/* Attaches to CPUs that have come. Called now and then on one thread at a time. */
void probe_refresh(struct probe *probe);

/* Sum of missed runs over all programs. */
uint64_t probe_missed(const struct probe *probe);

/* Memory of all maps in bytes, as the kernel accounts it. */
uint64_t probe_map_bytes(const struct probe *probe);

/* Borrowed, valid until probe_close(). The cut words are shared with the programs. */
struct cut *probe_cut(const struct probe *probe);
int probe_cpus_fd(const struct probe *probe);
int probe_ring_fd(const struct probe *probe);
int probe_outer_fd(const struct probe *probe);
int probe_window_fd(const struct probe *probe, unsigned int slot);

/* Of offcpu only: probe_max_threads() slots. */
struct thread *probe_threads(const struct probe *probe);
uint64_t probe_max_threads(const struct probe *probe);

/* Of iolat only; none where it has requests only. */
const struct io_slot *probe_io_slots(const struct probe *probe, size_t *n_out);

/* Frees the slot of a thread whose task is gone without its end having been seen. */
void probe_drop_thread(const struct probe *probe, struct thread *thread);

/* A new fd that visits every task when read; owned by the caller. Negative errno. */
int probe_iterate(const struct probe *probe);

/* Of calls only: how many are recorded, shared with the programs; and on how many functions they
 * are. */
struct call_pace *probe_pace(const struct probe *probe);
size_t probe_functions(const struct probe *probe);

/* The time a sample stands for. */
uint64_t probe_period_ns(const struct probe *probe);

#endif

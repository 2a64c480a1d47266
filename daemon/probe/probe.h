/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_PROBE_H
#define STACKD_DAEMON_PROBE_PROBE_H

/*
 * The programs of one session in the kernel: opened, loaded and attached as the running kernel
 * allows, by the settings and a filter. Gives the drain their maps, and `status` what is attached
 * where. Owned by a session; opened on any thread, afterwards read by any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/int_list.h"
#include "common/probe_kind.h"
#include "daemon/config/config.h"

struct broker;
struct io_slot;
struct probe;
struct unwind_maps;
struct call_pace;
struct cut;
struct session_filter;
struct targets;
struct thread;

enum { PROBE_MAX_PROGRAMS = 128, PROBE_MAX_BLIND = 8 };

struct probe_program {
	const char *name;
	const char *hook;
	uint64_t runs; /* this and run_ns: 0 unless kernel.bpf_stats_enabled is set */
	uint64_t run_ns;
	uint64_t missed; /* recursion_misses: events at which it was running already */
	uint32_t verified_insns;
};

struct probe_status {
	const char *hook; /* where it is attached, in words; NULL while it is off */
	bool is_on;
	bool is_disabled;   /* off because of the settings */
	const char *reason; /* why it is off, or has no better hook; NULL: it has the best */
	const char *blind[PROBE_MAX_BLIND]; /* what it cannot see from this hook */
	size_t n_blind;
	size_t n_programs;
	struct probe_program programs[PROBE_MAX_PROGRAMS];
};

/* Pointers are borrowed until the probe is closed. A kind reads only the members that concern it.
 */
struct probe_options {
	enum probe_kind kind;
	const struct config *config;
	struct broker *broker;		  /* may be NULL: then no perf event can be opened */
	const struct unwind_maps *unwind; /* may be NULL: then user stacks have one frame */
	uint64_t hash_seed;		  /* the same for all probes, so that a stack has one id */
	bool is_disabled;	/* by the settings: probe_open() gives a probe that is off */
	bool is_small;		/* of a client's session: it has smaller maps */
	bool follows_processes; /* reports fork, exec and exit; offcpu always does */
	const struct session_filter *filter; /* NULL: everything */
	const struct int_list *pids;	     /* belong to the filter; NULL or empty: any */
	const struct int_list *tids;
	int64_t min_wait_ns; /* kinds with PROBE_WAITS */
	/* Kinds with PROBE_SAMPLES: */
	uint64_t period_ns;
	const struct int_list *cpus; /* NULL or empty: all */
	bool with_cycles; /* sample by cycles if the hardware counts them, else by time */
	bool with_idle;
	/* Kinds with PROBE_FUNCTIONS: */
	const struct targets *targets;
	uint64_t rate; /* calls streamed per second; 0: none are streamed */
};

/* True if the settings want this kind always on. */
bool probe_is_enabled(enum probe_kind kind, const struct config *config);

/* Returns the least wait that the settings let this kind record, in ns; 0 without PROBE_WAITS. */
int64_t probe_min_wait(enum probe_kind kind, const struct config *config);

/*
 * Checks that this process may use BPF on this kernel: 0, or -EPERM or -EOPNOTSUPP with one line in
 * reason (size bytes) that says what to do. For a start, before anything is opened.
 */
int probe_check(char *reason, size_t size);

/*
 * Opens, loads and attaches. Returns 0 also if the kernel refuses the probe: then it is off and
 * probe_status() says why. -EPERM if the kernel refuses BPF tracing altogether, with one line in
 * reason (size bytes); -ENOMEM.
 */
int probe_open(const struct probe_options *options, struct probe **out, char *reason, size_t size);

/* Detaches everything; the maps stay readable until probe_close(). */
void probe_detach(struct probe *probe);
struct probe *probe_close(struct probe *probe);

bool probe_is_on(const struct probe *probe);
enum probe_kind probe_kind(const struct probe *probe);
void probe_status(const struct probe *probe, struct probe_status *out);

/* Attaches to CPUs that have come online. To be called regularly, on one thread at a time. */
void probe_refresh(struct probe *probe);

/* Returns how many events all programs together have missed (struct probe_program). */
uint64_t probe_missed(const struct probe *probe);

/* Returns the memory of all maps in bytes, as the kernel accounts it. */
uint64_t probe_map_bytes(const struct probe *probe);

/* Borrowed, valid until probe_close(). The programs share *probe_cut() with the daemon. */
struct cut *probe_cut(const struct probe *probe);
int probe_cpus_fd(const struct probe *probe);
int probe_ring_fd(const struct probe *probe);
int probe_outer_fd(const struct probe *probe);
int probe_window_fd(const struct probe *probe, unsigned int slot);

/* An array of probe_max_threads() slots, shared with the programs; NULL for all but offcpu. */
struct thread *probe_threads(const struct probe *probe);
uint64_t probe_max_threads(const struct probe *probe);

/* Operations in progress, shared with the programs. NULL, 0: not iolat, or it sees requests only.
 */
const struct io_slot *probe_io_slots(const struct probe *probe, size_t *n_out);

/* offcpu: frees the slot of a thread that has exited without the programs having seen it. */
void probe_drop_thread(const struct probe *probe, struct thread *thread);

/* offcpu: returns a new fd; reading it makes a program visit every task. Negative errno. */
int probe_iterate(const struct probe *probe);

/* Kinds with PROBE_FUNCTIONS: the share of calls that is recorded, shared with the programs (else
 * NULL), and the number of functions that are traced. */
struct call_pace *probe_pace(const struct probe *probe);
size_t probe_functions(const struct probe *probe);

/* Kinds with PROBE_SAMPLES: the time that one sample stands for. */
uint64_t probe_period_ns(const struct probe *probe);

#endif

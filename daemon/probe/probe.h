/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_PROBE_H
#define STACKD_DAEMON_PROBE_PROBE_H

/*
 * Opens, loads and attaches the BPF programs of one session, as the settings and the session's
 * filter say and as far as the running kernel allows. Gives the drain the maps of the programs, and
 * says for `stackctl status` what is attached where. A probe is owned by a session; any thread may
 * open it, and then any thread may read it.
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
	uint64_t runs;	 /* number of times that it ran; 0 unless kernel.bpf_stats_enabled is set */
	uint64_t run_ns; /* time that all runs took; 0 unless kernel.bpf_stats_enabled is set */
	uint64_t missed; /* events missed because it was running already (recursion_misses) */
	uint32_t verified_insns;
};

struct probe_status {
	const char *hook; /* where the probe is attached, as text for users; NULL while it is off */
	bool is_on;
	bool is_disabled;   /* the probe is off because of the settings */
	const char *reason; /* why the probe is off or uses no better hook, or NULL */
	const char *blind[PROBE_MAX_BLIND]; /* events that the probe cannot see from its hook */
	size_t n_blind;
	size_t n_programs;
	struct probe_program programs[PROBE_MAX_PROGRAMS];
};

/* Pointers are borrowed until the probe is closed. A kind of probe reads only the members that
 * concern that kind.
 */
struct probe_options {
	enum probe_kind kind;
	const struct config *config;
	struct broker *broker;		  /* NULL: no perf event can be opened */
	const struct unwind_maps *unwind; /* NULL: user stacks have one frame */
	uint64_t hash_seed; /* one seed for all probes, so that all give a stack the same id */
	bool is_disabled;   /* the settings disable it: probe_open() makes a probe that is off */
	bool is_small;	    /* the session was started by a client: the maps are smaller */
	bool follows_processes; /* the probe reports fork, exec and exit; offcpu always does */
	const struct session_filter *filter; /* NULL: everything is recorded */
	const struct int_list *pids;	     /* processes of the filter; NULL or empty: any */
	const struct int_list *tids;	     /* threads of the filter; NULL or empty: any */
	int64_t min_wait_ns; /* shortest wait that is recorded, for kinds with PROBE_WAITS */
	/* The members from here to with_idle are for kinds with PROBE_SAMPLES. */
	uint64_t period_ns;
	const struct int_list *cpus; /* CPUs that are sampled; NULL or empty: all */
	bool with_cycles; /* sample by cycles if the hardware counts them, else by time */
	bool with_idle;
	/* The members from here on are for kinds with PROBE_FUNCTIONS. */
	const struct targets *targets;
	uint64_t rate; /* calls per second that are streamed to clients; 0: none */
};

/* True if the settings say that a probe of this kind is always on. */
bool probe_is_enabled(enum probe_kind kind, const struct config *config);

/* Returns the shortest wait in ns that this kind records by the settings; 0 if it has no waits. */
int64_t probe_min_wait(enum probe_kind kind, const struct config *config);

/*
 * Checks that this process may use BPF on this kernel. Returns 0, or -EPERM or -EOPNOTSUPP with one
 * line in reason (size bytes) that says what to do. Called when the daemon starts, before it opens
 * any probe.
 */
int probe_check(char *reason, size_t size);

/*
 * Opens a probe, loads its programs and attaches them. Returns 0 even if the kernel refuses the
 * probe: the probe is then off, and probe_status() says why. Returns -EPERM if the kernel refuses
 * BPF tracing altogether, with one line in reason (size bytes), or -ENOMEM.
 */
int probe_open(const struct probe_options *options, struct probe **out, char *reason, size_t size);

/* Detaches all programs of the probe; its maps stay readable until probe_close(). */
void probe_detach(struct probe *probe);
struct probe *probe_close(struct probe *probe);

bool probe_is_on(const struct probe *probe);
enum probe_kind probe_kind(const struct probe *probe);
void probe_status(const struct probe *probe, struct probe_status *out);

/* Attaches the probe to CPUs that have come online. One thread at a time calls it regularly. */
void probe_refresh(struct probe *probe);

/* Returns how many events all programs of the probe have missed; see struct probe_program. */
uint64_t probe_missed(const struct probe *probe);

/* Returns the memory of the probe's own maps in bytes, as the kernel accounts it. */
uint64_t probe_map_bytes(const struct probe *probe);

/*
 * Return the number and start of the open window, in memory that the programs read, and the file
 * descriptors of the maps. All of these are borrowed, and valid until probe_close().
 */
struct cut *probe_cut(const struct probe *probe);
int probe_cpus_fd(const struct probe *probe);
int probe_ring_fd(const struct probe *probe);
int probe_outer_fd(const struct probe *probe);
int probe_window_fd(const struct probe *probe, unsigned int slot);

/* Returns an array of probe_max_threads() threads, in memory that the programs share; NULL unless
 * the kind is offcpu. */
struct thread *probe_threads(const struct probe *probe);
uint64_t probe_max_threads(const struct probe *probe);

/* Returns an array of *n_out slots for I/O operations in progress, in memory that the programs
 * share. NULL and 0 unless the kind is iolat and it records more than block requests. */
const struct io_slot *probe_io_slots(const struct probe *probe, size_t *n_out);

/* Frees the slot of a thread whose exit the programs have not seen. Only for offcpu. */
void probe_drop_thread(const struct probe *probe, struct thread *thread);

/* Returns a new file descriptor, or negative errno. Reading from it makes a BPF program visit every
 * task. Only for offcpu. */
int probe_iterate(const struct probe *probe);

/* Return the share of calls that is recorded, in memory that the programs read, and the number of
 * functions that are traced. NULL and 0 for kinds without PROBE_FUNCTIONS. */
struct call_pace *probe_pace(const struct probe *probe);
size_t probe_functions(const struct probe *probe);

/* Returns the time in ns that one sample stands for. Only for kinds with PROBE_SAMPLES. */
uint64_t probe_period_ns(const struct probe *probe);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_PROBE_H
#define STACKD_DAEMON_PROBE_PROBE_H

/*
 * Opens, loads and attaches the BPF programs of one session, as the settings and the session's
 * filter say and as far as the running kernel allows. Gives the drain the maps of the programs, and
 * tells users what is attached where. A probe is owned by a session. Any thread may open a probe;
 * after that, any thread may read it.
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
struct filter_cgroup;
struct session_filter;
struct targets;
struct thread;

enum { PROBE_MAX_PROGRAMS = 128, PROBE_MAX_BLIND = 8 };

struct probe_program {
	const char *name;
	const char *hook;
	uint64_t runs;	 /* number of runs of the BPF program; 0 unless kernel.bpf_stats_enabled is
			    set */
	uint64_t run_ns; /* time of all runs, ns; 0 unless kernel.bpf_stats_enabled is set */
	uint64_t missed; /* events missed because the BPF program was already running
			    (recursion_misses) */
	uint32_t verified_insns;
};

struct probe_status {
	const char *hook; /* where the probe is attached, as text for users; NULL: it is off */
	bool is_on;
	bool is_disabled; /* true if the settings turn the probe off */
	/* why the probe is off, or why it does not use the best hook; else NULL */
	const char *reason;
	const char *blind[PROBE_MAX_BLIND]; /* events that the probe cannot see, as text */
	size_t n_blind;
	size_t n_programs;
	struct probe_program programs[PROBE_MAX_PROGRAMS];
};

/*
 * Pointers are borrowed until the probe is closed. Each kind of probe reads only the members that
 * concern it.
 */
struct probe_options {
	enum probe_kind kind;
	const struct config *config;
	struct broker *broker; /* opens perf events for the probe; NULL: the probe gets none */
	/* maps for walking user stacks; NULL: user stacks have only one frame */
	const struct unwind_maps *unwind;
	uint64_t hash_seed; /* seed of stack ids; the same in all probes */
	/*
	 * the result of cgroup_root(): the number of the cgroup that is the root of the hierarchy
	 * as the daemon sees it
	 */
	uint64_t cgroup_root;
	bool is_disabled;	/* true: disabled by the settings; probe_open() leaves it off */
	bool is_small;		/* true if a client started the session: its maps are smaller */
	bool follows_processes; /* true: reports fork, exec and exit; offcpu always does */
	const struct session_filter *filter; /* which events to record; NULL: all */
	/* FILTER_CGROUPS entries, of those that `filter` names; NULL: it names none */
	const struct filter_cgroup *cgroups;
	const struct int_list *pids; /* processes to record; NULL or empty: all */
	const struct int_list *tids; /* threads to record; NULL or empty: all */
	int64_t min_wait_ns; /* waits shorter than this are not recorded; used by kinds of probes
				with the flag PROBE_WAITS */
	int64_t sample_below_ns; /* first value for probe_set_sample_below() */
	/*
	 * The members `period_ns`, `cpus`, `with_cycles` and `with_idle` are used by kinds of
	 * probes with the flag PROBE_SAMPLES.
	 */
	uint64_t period_ns;
	const struct int_list *cpus; /* CPUs to sample; NULL or empty: all */
	bool with_cycles; /* true: sample by cycles if the hardware counts them; false: by time */
	bool with_idle;
	/*
	 * The members `targets` and `rate` are used by kinds of probes with the flag
	 * PROBE_FUNCTIONS.
	 */
	const struct targets *targets;
	uint64_t rate; /* maximum number of calls streamed to clients per second; 0: none */
};

/* True if the settings say that a probe of this kind runs all the time. */
bool probe_is_enabled(enum probe_kind kind, const struct config *config);

/*
 * Returns the length in ns of the shortest wait that this kind of probe records, as the settings
 * say. 0 if the kind has no waits.
 */
int64_t probe_min_wait(enum probe_kind kind, const struct config *config);

/*
 * Returns the length in ns below which this kind of probe records only some waits, chosen at
 * random, as the settings say. 0: it records all waits, or those of at least probe_min_wait().
 */
int64_t probe_sample_below_setting(enum probe_kind kind, const struct config *config);

/*
 * Checks that this process may use BPF on this kernel. Returns 0, -EPERM or -EOPNOTSUPP; on an
 * error, `reason` (size bytes) gets one line that says what to do. Called when the daemon starts,
 * before it opens any probe.
 */
int probe_check(char *reason, size_t size);

/*
 * Opens a probe, loads its programs and attaches them. Returns 0 even if the kernel refuses the
 * probe: the probe is then off, and probe_status() says why. Returns -ENOMEM, or -EPERM if the
 * kernel refuses any BPF tracing; then `reason` (size bytes) gets one line about it.
 */
int probe_open(const struct probe_options *options, struct probe **out, char *reason, size_t size);

/* Detaches all programs of the probe; its maps stay readable until probe_close(). */
void probe_detach(struct probe *probe);
struct probe *probe_close(struct probe *probe);

bool probe_is_on(const struct probe *probe);
enum probe_kind probe_kind(const struct probe *probe);
void probe_status(const struct probe *probe, struct probe_status *out);

/*
 * Returns which I/O the probe does not record, and the command that records it, of the texts in
 * status->blind (see ABOVE in note_words.h); NULL if it records all.
 */
const char *probe_status_above(const struct probe_status *status);

/* Attaches the probe to CPUs that have come online. Called regularly, by one thread at a time. */
void probe_refresh(struct probe *probe);

/*
 * Returns how many events the BPF programs of the probe have missed in all; see
 * probe_program.missed.
 */
uint64_t probe_missed(const struct probe *probe);

/* Returns how many bytes the kernel charges for the probe's own maps. */
uint64_t probe_map_bytes(const struct probe *probe);

/*
 * offcpu, offwake: from now on, a wait that is shorter than below_ns is recorded with its stacks
 * with the probability length / below_ns, and then counts as below_ns; see bpf/sample.h. Waits
 * below the minimum length are left out, unless probe_options.sample_below_ns was not 0. below_ns
 * is raised to the probe's minimum length and limited to SAMPLE_BELOW_MAX. 0: no wait below the
 * minimum length is recorded with its stacks, and all others are. iolat: the same for operations,
 * where the setting `slow` is the minimum length. Other kinds of probes ignore the value. Any
 * thread. The drain passes the value to the programs, within a second.
 */
void probe_set_sample_below(struct probe *probe, uint64_t below_ns);

/* Returns the length in ns that was last set by probe_set_sample_below(). Any thread. */
uint64_t probe_sample_below(const struct probe *probe);

/*
 * Sets the share of each CPU that walks of stacks of waits and of slow operations may take, in
 * units of 1 / BRAKE_SHARE_ALL, see bpf/brake.h; 0: there is no limit. The programs of offcpu,
 * offwake and iolat have brakes, except where stacks are taken at switch-out. The drain passes it
 * to the programs. Any thread.
 */
void probe_set_brake(struct probe *probe, uint32_t share);

/* Returns the share that was last set by probe_set_brake(). Any thread. */
uint32_t probe_brake(const struct probe *probe);

/*
 * Sets what the programs leave out to keep within the budget: `flags`, of enum shed_flag, and for
 * oncpu all but one of sample_every samples; 0: none. The drain passes it to the programs. Any
 * thread.
 */
void probe_set_shed(struct probe *probe, uint32_t flags, uint32_t sample_every);

/* Writes what was last set by probe_set_shed() into *cut. Any thread. */
void probe_pass_shed(const struct probe *probe, struct cut *cut);

/*
 * Returns the length below which a brake left waits or operations to chance, at most, if it took
 * so many steps
 * while probe_sample_below() was at most below_ns.
 */
uint64_t probe_brake_below(const struct probe *probe, uint32_t steps, uint64_t below_ns);

/*
 * probe_cut() returns the struct from which the programs read the number and the start of the open
 * window. The other functions return file descriptors of maps. All results are borrowed, and valid
 * until probe_close().
 */
struct cut *probe_cut(const struct probe *probe);
int probe_cpus_fd(const struct probe *probe);
int probe_ring_fd(const struct probe *probe);
int probe_outer_fd(const struct probe *probe);
int probe_window_fd(const struct probe *probe, unsigned int slot);

/* True for offcpu, which has a table of all known threads. */
bool probe_has_threads(const struct probe *probe);

/*
 * offcpu: maps a piece of the table of all known threads into memory: the entries from number
 * `first` on, which must be the end of the previous piece, or 0. Stores the piece in *out, and
 * returns its number of entries; 0 behind the last piece, or a negative errno. BPF programs may
 * change the entries at any time. The piece stays mapped until probe_close().
 *
 * BPF programs use the entries in order: a new one only when no entry is free that was used before.
 * So the pieces behind one that was never used need not be mapped.
 */
int probe_map_threads(struct probe *probe, uint64_t first, struct thread **out);

/*
 * iolat: returns an array of *n_out slots, one for each thread that may have an I/O operation in
 * progress. BPF programs may change the array at any time. Returns NULL and sets *n_out to 0 for
 * other kinds of probes, or if only block requests are recorded.
 */
const struct io_slot *probe_io_slots(const struct probe *probe, size_t *n_out);

/*
 * offcpu: frees the entry that a thread has in the array of all known threads. For a thread whose
 * exit the programs have not seen.
 */
void probe_drop_thread(const struct probe *probe, struct thread *thread);

/*
 * offcpu: returns a new file descriptor, or a negative errno. Reading from the descriptor makes a
 * BPF program visit every thread.
 */
int probe_iterate(const struct probe *probe);

/*
 * probe_pace() returns the struct that tells the BPF programs which share of the calls to record.
 * probe_functions() returns how many functions are traced. For kinds of probes without the flag
 * PROBE_FUNCTIONS, they return NULL and 0.
 */
struct call_pace *probe_pace(const struct probe *probe);
size_t probe_functions(const struct probe *probe);

/*
 * Returns the CPU time in ns that one sample stands for. Only for kinds of probes with the flag
 * PROBE_SAMPLES.
 */
uint64_t probe_period_ns(const struct probe *probe);

#endif

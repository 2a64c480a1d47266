/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_INTERNAL_H
#define STACKD_DAEMON_PROBE_INTERNAL_H

/*
 * Private header of this folder. probe.c opens, loads, attaches and closes a probe of any kind
 * through the struct probe_ops of its kind. Each kind has a file (offcpu.c, oncpu.c, ...) that
 * defines its struct probe_ops; kinds.h lists the kinds. All functions run on the thread that opens
 * the probe, except the operations refresh() and blind().
 */

#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>

#include "daemon/broker/broker.h"
#include "daemon/probe/kinds.h"
#include "daemon/probe/probe.h"

struct io_slot;
struct iolat_layers;
struct multi_attach;
struct perf_links;

enum { PROBE_MAX_LINKS = 128 };

/*
 * For offcpu and offwake sessions that a client started: maximum number of entries in the BPF map
 * of one window. If the map is full, further events are counted as lost.
 */
enum { PROBE_SMALL_KEYS = 8192 };

/* The first members of every skeleton struct that bpftool generates for a BPF object. */
struct probe_skeleton {
	struct bpf_object_skeleton *skeleton;
	struct bpf_object *obj;
};

/*
 * The settings and functions that differ between kinds of probes.
 */
struct probe_ops {
	/*
	 * True if the settings say that a probe of this kind runs all the time. NULL: such a probe
	 * runs only when a client starts it.
	 */
	bool (*is_enabled)(const struct config *config);
	/*
	 * Returns the length in ns of the shortest wait that is recorded. NULL: the kind has no
	 * waits.
	 */
	int64_t (*min_wait)(const struct config *config);
	/*
	 * Returns the setting for probe_set_sample_below(). NULL: this kind of probe records no
	 * wait by chance.
	 */
	int64_t (*sample_below)(const struct config *config);
	/*
	 * Returns the least value for probe_set_sample_below(); 0: only the value 0 is allowed.
	 * NULL: the least value is options.min_wait_ns.
	 */
	uint64_t (*sample_least)(const struct probe *probe);
	/* Returns the maximum number of entries in the BPF map of one window. */
	uint64_t (*keys_max)(const struct probe_options *options);
	/*
	 * True: if the kernel denies permission for a probe of this kind, it permits no BPF tracing
	 * at all. probe_open() then fails; for other kinds, it returns a probe that is off.
	 */
	bool is_essential;

	/*
	 * Opens the skeleton and stores it in *out. Returns 0, or a negative errno; on an error,
	 * the caller frees *out if it is not NULL.
	 */
	int (*open)(struct probe_skeleton **out);
	/*
	 * Sets variables and the sizes of maps, and selects the BPF programs to load. Called before
	 * the programs are loaded.
	 */
	int (*configure)(struct probe *probe);
	/*
	 * Returns the struct cut of the loaded programs: they read from it the number and the start
	 * of the open window. NULL if libbpf could not map it into memory.
	 */
	struct cut *(*cut)(const struct probe_skeleton *skeleton);
	/* Attaches the loaded programs. 0, or a negative errno: the caller then detaches all. */
	int (*attach)(struct probe *probe);
	/*
	 * Tries the hooks (places to attach to) one by one, from the best to the worst, by calling
	 * probe_try(), until one of them works. NULL: there is only one hook.
	 */
	int (*choose)(struct probe *probe);
	/*
	 * Returns the name of the hook (where the probe is attached), for users. Works even if the
	 * probe could not be loaded.
	 */
	const char *(*hook)(const struct probe *probe);
	/*
	 * Appends to out->blind texts that say which events this probe cannot see. NULL: it sees
	 * all events.
	 */
	void (*blind)(const struct probe *probe, struct probe_status *out);
	/*
	 * Attaches the probe to CPUs that have come online. NULL: the probe is not attached to each
	 * CPU separately.
	 */
	void (*refresh)(struct probe *probe);
	/*
	 * Detaches those programs that are attached without a link in probe->links. NULL: there are
	 * no such programs.
	 */
	void (*detach)(struct probe *probe);
	/*
	 * Frees the memory that only this kind of probe uses. Does not free the skeleton: the
	 * caller does so later. May be NULL.
	 */
	void (*close)(struct probe *probe);
};

/*
 * Returns the length below which waits are never recorded by chance. Without a length to sample
 * below in the options, probe_set_sample_below() can only leave out waits, not add any.
 */
static inline uint64_t probe_sample_from(const struct probe_options *options)
{
	return options->sample_below_ns ? 0 : (uint64_t)options->min_wait_ns;
}

/*
 * The BPF programs of one session, with their options. Maps and links exist only while the programs
 * are loaded.
 */
struct probe {
	struct probe_options options;
	const struct probe_ops *ops;
	uint64_t max_keys;		 /* maximum number of entries in the map of one window */
	struct probe_skeleton *skeleton; /* struct that bpftool generated for this kind of probe */
	struct bpf_object *object;	 /* BPF object of the skeleton */
	struct cut *cut;
	_Atomic uint64_t sample_below_ns; /* see probe_set_sample_below() */
	_Atomic uint32_t brake_share;	  /* see probe_set_brake() */
	_Atomic uint32_t shed;		  /* see probe_set_shed() */
	_Atomic uint32_t sample_every;
	struct bpf_link *links[PROBE_MAX_LINKS];
	size_t n_links;
	struct bpf_link *iterator;
	int window_fds[2];
	unsigned int hook; /* where the probe is attached; a value of enum stack_hook, or of enum
			      broker_clock for oncpu */
	bool is_on;
	bool is_explained; /* true if `reason` already says why probe_try() failed */
	char reason[256];
	struct perf_links *perf_links; /* oncpu only: one link per CPU */
	/*
	 * The members `functions`, `pace` and `n_functions` are used by stackcount and stacksnoop
	 * only.
	 */
	struct multi_attach *functions; /* the functions that are traced; NULL for tracepoints */
	struct call_pace *pace;
	size_t n_functions;
	/* The members `layers` and `slots` are used by iolat only. */
	struct iolat_layers *layers;
	struct io_slot *slots; /* I/O operations in progress, in the memory of a BPF map */
	/* The members `threads` and `max_threads` are used by offcpu only. */
	struct thread **threads; /* all known threads, in the memory of a BPF map; see
				    probe_map_threads() */
	uint64_t max_threads;
};

/*
 * Defines two functions for the members `open` and `cut` of a struct probe_ops. The skeleton of
 * this kind of probe is struct `type`; the functions are named `type`_open() and `type`_cut().
 */
#define PROBE_SKELETON(type)                                                                       \
	_Static_assert(offsetof(struct type, skeleton) ==                                          \
				       offsetof(struct probe_skeleton, skeleton) &&                \
			       offsetof(struct type, obj) == offsetof(struct probe_skeleton, obj), \
		       "skeletons begin alike");                                                   \
	static int type##_open(struct probe_skeleton **out)                                        \
	{                                                                                          \
		*out = (struct probe_skeleton *)type##__open();                                    \
		return *out ? 0 : -errno;                                                          \
	}                                                                                          \
	static struct cut *type##_cut(const struct probe_skeleton *skeleton)                       \
	{                                                                                          \
		const struct type *skel = (const struct type *)skeleton;                           \
                                                                                                   \
		return skel->bss ? &skel->bss->cut : NULL;                                         \
	}

/*
 * True if the kernel's struct backing_file stores, directly behind the struct file, the path that a
 * mapped file has in an overlay (since 6.8).
 */
bool probe_has_user_path(void);

/*
 * Sets the variables that the BPF programs of all kinds of probes have. `size` is the size of the
 * ring buffer in bytes.
 */
#define probe_set_variables(probe, rodata, size)                                  \
	do {                                                                      \
		(rodata)->hash_seed = (probe)->options.hash_seed;                 \
		(rodata)->cgroup_root = (probe)->options.cgroup_root;             \
		(rodata)->has_user_path = probe_has_user_path();                  \
		(rodata)->follows_processes = (probe)->options.follows_processes; \
		(rodata)->ring_wake_bytes = (size) / 4;                           \
		(rodata)->ring_stack_bytes = (size) - (size) / 4;                 \
		if ((probe)->options.filter)                                      \
			memcpy(&(rodata)->filter, (probe)->options.filter,        \
			       sizeof((rodata)->filter));                         \
	} while (0)

/*
 * Loads the probe and attaches it to probe->hook. 0, or negative errno: then nothing of the probe
 * is left in the kernel, and probe->reason says why.
 */
int probe_try(struct probe *probe);

/* Sets probe->reason, a text that says why probe_try() failed or why no better hook is used. */
void probe_fail(struct probe *probe, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * If the errno r says that a perf event was refused, sets probe->reason to a text that names the
 * kernel setting behind the refusal.
 */
void probe_fail_if_refused(struct probe *probe, int r);

/* The sizes of the BPF maps that every kind of probe has. */
struct probe_sizes {
	size_t key;	     /* size of a key in the map of one window, in bytes */
	size_t value;	     /* size of a value in the map of one window, in bytes */
	uint32_t ring_bytes; /* size of the ring buffer for stacks and records, in bytes */
	uint32_t n_seen;     /* number of entries in the map of stacks that were sent before */
};

/*
 * Creates the maps of the two windows, and sets the sizes of the other maps that every kind has.
 * Called before the programs are loaded. 0, or a negative errno.
 */
int probe_prepare(struct probe *probe, const struct probe_sizes *sizes);

/* Attaches a program to the hook that its ELF section names. 0, or a negative errno. */
int probe_attach_one(struct probe *probe, struct bpf_program *program);

/*
 * Attaches the programs one by one. Stops at the first program that the kernel refuses. 0 or
 * negative errno.
 */
int probe_attach_all(struct probe *probe, struct bpf_program *const *programs, size_t n);

/* Attaches a BPF program to the raw tracepoint of this name. 0 or negative errno. */
int probe_attach_raw(struct probe *probe, struct bpf_program *program, const char *tracepoint);

/*
 * Attaches a BPF program to a kprobe, which the broker process opens. One program may be attached
 * to several kprobes: by reading `cookie` it knows which of them was hit. 0, or a negative errno.
 */
int probe_attach_kprobe(struct probe *probe, struct bpf_program *program,
			const struct broker_kprobe *kprobe, uint64_t cookie);

/*
 * Has the program on_move loaded, which reports that a process was moved to another control group,
 * if options.follows_processes is set and this kernel has its tracepoint (since 4.9, with
 * CONFIG_CGROUPS). 0 or a negative errno.
 */
int probe_choose_move(struct probe *probe);
/*
 * Attaches the programs that report fork, exec, exit and moves, if options.follows_processes is
 * set.
 */
int probe_follow(struct probe *probe);

/*
 * Returns the fd of the map with this name in the loaded BPF object, or -ENOENT. The fd is
 * borrowed.
 */
int probe_map_fd(const struct probe *probe, const char *name);

/*
 * Fills *out with the kernel's data about a loaded program. The strings in *out belong to the BPF
 * object.
 */
void probe_program_read(const struct bpf_program *program, struct probe_program *out);

/*
 * Detaches and unloads all programs and maps, so that nothing of the probe is left in the kernel.
 */
void probe_unload(struct probe *probe);

#endif

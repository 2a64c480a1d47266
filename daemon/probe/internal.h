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
 * Maximum number of entries in the BPF map of one window, in offcpu and offwake sessions that a
 * client started. Events beyond that are counted as lost.
 */
enum { PROBE_SMALL_KEYS = 8192 };

/* The first members of every skeleton struct that bpftool generates for a BPF object. */
struct probe_skeleton {
	struct bpf_object_skeleton *skeleton;
	struct bpf_object *obj;
};

/* The differences between kinds of probes: settings, and steps of opening a probe. */
struct probe_ops {
	/*
	 * True if the settings keep a probe of this kind always on. NULL: only clients start such a
	 * probe.
	 */
	bool (*is_enabled)(const struct config *config);
	/*
	 * Returns the minimum length of a wait to be recorded, in ns. NULL: the kind has no waits.
	 */
	int64_t (*min_wait)(const struct config *config);
	/* Returns the maximum number of entries in the BPF map of one window. */
	uint64_t (*keys_max)(const struct probe_options *options);
	/* True if a kernel that refuses this kind of probe refuses BPF tracing altogether. */
	bool is_essential;

	/*
	 * Opens the skeleton. 0, or a negative errno, after which *out may still be a skeleton that
	 * has to be freed.
	 */
	int (*open)(struct probe_skeleton **out);
	/*
	 * Sets variables and the sizes of maps, and selects the programs to load. Called before the
	 * programs are loaded.
	 */
	int (*configure)(struct probe *probe);
	/*
	 * Returns the struct cut that the loaded programs read, with the number and start of the
	 * open window; NULL if it could not be mapped.
	 */
	struct cut *(*cut)(const struct probe_skeleton *skeleton);
	/* Attaches the loaded programs. 0, or a negative errno: the caller then detaches all. */
	int (*attach)(struct probe *probe);
	/*
	 * Calls probe_try() with one hook (place to attach to) after the other, the best first,
	 * until one works. NULL: there is only one hook.
	 */
	int (*choose)(struct probe *probe);
	/*
	 * Returns the name of the hook (where the probe is attached), for users. Works even if the
	 * probe could not be loaded.
	 */
	const char *(*hook)(const struct probe *probe);
	/* Adds to out->blind the events that this probe cannot see. NULL: it sees all events. */
	void (*blind)(const struct probe *probe, struct probe_status *out);
	/*
	 * Attaches the probe to CPUs that have come online. NULL: it is not attached to single
	 * CPUs.
	 */
	void (*refresh)(struct probe *probe);
	/* Detaches the programs whose links are not in probe->links. NULL: there are none. */
	void (*detach)(struct probe *probe);
	/*
	 * Frees the memory of the kind, except the skeleton, which the caller frees later. May be
	 * NULL.
	 */
	void (*close)(struct probe *probe);
};

/* The BPF programs of one session: the options, and the maps and links while they are loaded. */
struct probe {
	struct probe_options options;
	const struct probe_ops *ops;
	uint64_t max_keys;		 /* maximum number of entries in the map of one window */
	struct probe_skeleton *skeleton; /* struct that bpftool generated for this kind */
	struct bpf_object *object;	 /* BPF object of the skeleton */
	struct cut *cut;
	struct bpf_link *links[PROBE_MAX_LINKS];
	size_t n_links;
	struct bpf_link *iterator;
	int window_fds[2];
	unsigned int hook; /* where the probe is attached: enum stack_hook; for oncpu, enum
			      broker_clock */
	bool is_on;
	bool is_explained; /* true if `reason` already says why probe_try() failed */
	char reason[256];
	struct perf_links *perf_links; /* oncpu only: one link per CPU */
	/* functions, pace and n_functions are for stackcount and stacksnoop only. */
	struct multi_attach *functions; /* the functions that are traced; NULL for tracepoints */
	struct call_pace *pace;
	size_t n_functions;
	/* `layers` and `slots` are for iolat only. */
	struct iolat_layers *layers;
	struct io_slot *slots; /* I/O operations in progress, in the memory of a BPF map */
	/* `threads` and `max_threads` are for offcpu only. */
	struct thread *threads; /* all known threads, in the memory of a BPF map */
	uint64_t max_threads;
};

/*
 * Defines type_open() and type_cut(), for the members `open` and `cut` of a struct probe_ops.
 * struct type is the skeleton of this kind of probe.
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
 * Sets the variables that the programs of every kind have. `size`: size of the ring buffer in
 * bytes.
 */
#define probe_set_variables(probe, rodata, size)                           \
	do {                                                               \
		(rodata)->hash_seed = (probe)->options.hash_seed;          \
		(rodata)->ring_wake_bytes = (size) / 4;                    \
		(rodata)->ring_stack_bytes = (size) - (size) / 4;          \
		if ((probe)->options.filter)                               \
			memcpy(&(rodata)->filter, (probe)->options.filter, \
			       sizeof((rodata)->filter));                  \
	} while (0)

/*
 * Loads the probe and attaches it to probe->hook. 0, or negative errno: then nothing of the probe
 * is left in the kernel, and probe->reason says why.
 */
int probe_try(struct probe *probe);

/* Sets probe->reason, a text that says why probe_try() failed or why no better hook is used. */
void probe_fail(struct probe *probe, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * If r is the error of a refused perf event, sets probe->reason to the kernel setting that caused
 * it.
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

/* Attaches a program to the place that its ELF section names. 0, or a negative errno. */
int probe_attach_one(struct probe *probe, struct bpf_program *program);

/* Attaches programs in order, up to the first that the kernel refuses. 0 or negative errno. */
int probe_attach_all(struct probe *probe, struct bpf_program *const *programs, size_t n);

/* Attaches a program to the tracepoint of this name. 0 or negative errno. */
int probe_attach_raw(struct probe *probe, struct bpf_program *program, const char *tracepoint);

/*
 * Attaches a program to a kprobe that the broker process opens. The program can
 * read the cookie to know which of its kprobes was hit. 0, or a negative errno.
 */
int probe_attach_kprobe(struct probe *probe, struct bpf_program *program,
			const struct broker_kprobe *kprobe, uint64_t cookie);

/* Attaches the programs that report fork, exec and exit, if options.follows_processes is set. */
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_INTERNAL_H
#define STACKD_DAEMON_PROBE_INTERNAL_H

/*
 * The private header of the files behind probe.h. probe.c opens, loads, attaches and closes a probe
 * of any kind through the kind's struct probe_ops; a file per kind (offcpu.c, oncpu.c, ...) defines
 * its ops; kinds.h lists the kinds. All of it runs on the thread that opens the probe, except the
 * ops refresh() and blind().
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

/* Most rows of a window of a client's offcpu or offwake session; more are counted as lost. */
enum { PROBE_SMALL_KEYS = 8192 };

/* The first members of every skeleton struct that bpftool generates for a BPF object. */
struct probe_skeleton {
	struct bpf_object_skeleton *skeleton;
	struct bpf_object *obj;
};

/* The settings of a kind of probe, and the steps of opening it that differ from kind to kind. */
struct probe_ops {
	/* True if the settings say that the kind is always on. NULL: only clients start it. */
	bool (*is_enabled)(const struct config *config);
	/* Returns the shortest wait that is recorded, in ns. NULL: the kind has no waits. */
	int64_t (*min_wait)(const struct config *config);
	/* Returns how many rows one window holds at most. */
	uint64_t (*keys_max)(const struct probe_options *options);
	/* True: if the kernel refuses this kind, it refuses BPF tracing altogether. */
	bool is_essential;

	/* Opens the skeleton. 0 or negative errno; *out may be a skeleton to free even on errors.
	 */
	int (*open)(struct probe_skeleton **out);
	/* Sets variables, the sizes of maps and which programs are loaded. Runs before the load. */
	int (*configure)(struct probe *probe);
	/* Returns the struct cut that the loaded programs read; NULL if it is not in memory. */
	struct cut *(*cut)(const struct probe_skeleton *skeleton);
	/* Attaches the loaded programs. 0, or negative errno: the caller then detaches them all. */
	int (*attach)(struct probe *probe);
	/* Calls probe_try() for each hook, best first, until one works. NULL: there is one hook. */
	int (*choose)(struct probe *probe);
	/* Returns the name of the hook, for `stackctl status` and for errors. Works even if the
	 * probe did not load. */
	const char *(*hook)(const struct probe *probe);
	/* Adds the events that this probe cannot see to out->blind. NULL: it sees all events. */
	void (*blind)(const struct probe *probe, struct probe_status *out);
	/* Attaches to CPUs that have come online. NULL: the kind does not attach CPU by CPU. */
	void (*refresh)(struct probe *probe);
	/* Detaches programs that probe->links does not hold. NULL: probe->links holds all. */
	void (*detach)(struct probe *probe);
	/* Frees memory of the kind other than the skeleton, which is freed later. May be NULL. */
	void (*close)(struct probe *probe);
};

/* A probe: the options that it was opened with and, once it is attached, its maps and links. */
struct probe {
	struct probe_options options;
	const struct probe_ops *ops;
	uint64_t max_keys;		 /* most rows of one window */
	struct probe_skeleton *skeleton; /* points to the struct that bpftool generated */
	struct bpf_object *object;	 /* the BPF object of the skeleton */
	struct cut *cut;
	struct bpf_link *links[PROBE_MAX_LINKS];
	size_t n_links;
	struct bpf_link *iterator;
	int window_fds[2];
	unsigned int hook; /* where the probe is attached: enum stack_hook; for oncpu, enum
			      broker_clock */
	bool is_on;
	bool is_explained; /* reason already says why the last probe_try() failed */
	char reason[256];
	struct perf_links *perf_links; /* oncpu only: a link per CPU */
	/* The next three members are for stackcount and stacksnoop only. */
	struct multi_attach *functions; /* the attached functions; NULL for tracepoints */
	struct call_pace *pace;
	size_t n_functions;
	/* The next two members are for iolat only. */
	struct iolat_layers *layers;
	struct io_slot *slots; /* operations in progress, in the memory of a BPF map */
	/* The next two members are for offcpu only. */
	struct thread *threads; /* array in the memory of a BPF map */
	uint64_t max_threads;
};

/* Defines type_open() and type_cut(), the ops `open` and `cut` of a kind. struct type: its
 * skeleton.
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

/* Sets the variables that the programs of every kind have. `size`: bytes of the ring buffer. */
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

/* Sets probe->reason, which says why probe_try() failed or why no better hook is used. */
void probe_fail(struct probe *probe, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* If r says that perf events are refused, sets probe->reason to the kernel setting that does it. */
void probe_fail_if_refused(struct probe *probe, int r);

/* The sizes of the maps that every kind has. */
struct probe_sizes {
	size_t key;	     /* bytes of a key in the map of a window */
	size_t value;	     /* bytes of a value in the map of a window */
	uint32_t ring_bytes; /* bytes of the ring buffer for stacks and records */
	uint32_t n_seen;     /* entries of the map that has the stacks sent before */
};

/* Creates the maps of the two windows and sizes the other maps that every kind has. Runs before the
 * load. */
int probe_prepare(struct probe *probe, const struct probe_sizes *sizes);

/* Attaches a program where its ELF section says. 0 or negative errno. */
int probe_attach_one(struct probe *probe, struct bpf_program *program);

/* Attaches programs in order, up to the first that the kernel refuses. 0 or negative errno. */
int probe_attach_all(struct probe *probe, struct bpf_program *const *programs, size_t n);

/* Attaches a program to the tracepoint of this name. 0 or negative errno. */
int probe_attach_raw(struct probe *probe, struct bpf_program *program, const char *tracepoint);

/* Attaches a program to a kprobe that the broker opens. By the cookie the program sees which of its
 * kprobes was hit. 0 or negative errno. */
int probe_attach_kprobe(struct probe *probe, struct bpf_program *program,
			const struct broker_kprobe *kprobe, uint64_t cookie);

/* Attaches the programs that report fork, exec and exit, if options.follows_processes is set. */
int probe_follow(struct probe *probe);

/* Returns the fd of a map of the loaded object, or -ENOENT; borrowed. */
int probe_map_fd(const struct probe *probe, const char *name);

/* Reads the kernel's facts about a loaded program. The strings in *out belong to the BPF object. */
void probe_program_read(const struct bpf_program *program, struct probe_program *out);

/* Detaches and unloads everything, so that nothing of the probe is left in the kernel. */
void probe_unload(struct probe *probe);

#endif

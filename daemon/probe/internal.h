/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_INTERNAL_H
#define STACKD_DAEMON_PROBE_INTERNAL_H

/*
 * The private header of the files behind probe.h. probe.c opens, loads, attaches and closes a probe
 * of any kind through the kind's struct probe_ops; a file per kind (offcpu.c, oncpu.c, ...) defines
 * these; kinds.h lists them. All of it runs on the thread that opens the probe, but for refresh()
 * and blind().
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

/* Rows of a window of a client's session of waits; more are counted as lost. */
enum { PROBE_SMALL_KEYS = 8192 };

/* The start of every struct that bpftool generates for an object. */
struct probe_skeleton {
	struct bpf_object_skeleton *skeleton;
	struct bpf_object *obj;
};

/* A kind of probe: its settings, and the steps that differ from those of other kinds. */
struct probe_ops {
	/* True if the settings want it always on. NULL: clients only start it. */
	bool (*is_enabled)(const struct config *config);
	/* Returns the least wait that is recorded, in ns. NULL: the kind has no waits. */
	int64_t (*min_wait)(const struct config *config);
	/* Returns how many rows one window holds. */
	uint64_t (*keys_max)(const struct probe_options *options);
	/* A kernel that refuses this kind refuses BPF tracing altogether. */
	bool is_essential;

	/* Opens the skeleton: 0 or negative errno. Returns it in *out even on error, or NULL. */
	int (*open)(struct probe_skeleton **out);
	/* Before load: sets variables, sizes of maps and which programs to load. */
	int (*configure)(struct probe *probe);
	/* Finds the words of the open window in the loaded skeleton; NULL if they are not mapped.
	 */
	struct cut *(*cut)(const struct probe_skeleton *skeleton);
	/* After load: 0, or negative errno; then the caller undoes what was attached. */
	int (*attach)(struct probe *probe);
	/* Calls probe_try() for each way to attach until one works. NULL: there is one way. */
	int (*choose)(struct probe *probe);
	/* Names the attach point, for `status` and for errors; also of a probe that did not load.
	 */
	const char *(*hook)(const struct probe *probe);
	/* Adds to out->blind what this probe cannot see. NULL: nothing to add. */
	void (*blind)(const struct probe *probe, struct probe_status *out);
	/* Attaches to CPUs that have come online. NULL: it needs no such step. */
	void (*refresh)(struct probe *probe);
	/* Detaches what is not in probe->links. NULL: everything is there. */
	void (*detach)(struct probe *probe);
	/* Frees what the kind has besides the skeleton, which is still there. May be NULL. */
	void (*close)(struct probe *probe);
};

/* A probe: the options it was opened with, and once it is attached its state in the kernel. */
struct probe {
	struct probe_options options;
	const struct probe_ops *ops;
	uint64_t max_keys;		 /* rows of one window */
	struct probe_skeleton *skeleton; /* a struct of the kind's own type */
	struct bpf_object *object;	 /* the skeleton's */
	struct cut *cut;
	struct bpf_link *links[PROBE_MAX_LINKS];
	size_t n_links;
	struct bpf_link *iterator;
	int window_fds[2];
	unsigned int hook; /* how it is attached: enum stack_hook; of oncpu, enum broker_clock */
	bool is_on;
	bool is_explained; /* the try that failed has set reason itself */
	char reason[256];
	/* oncpu: a link per CPU. */
	struct perf_links *perf_links;
	/* stackcount, stacksnoop: */
	struct multi_attach *functions; /* how these are attached; NULL for tracepoints */
	struct call_pace *pace;
	size_t n_functions;
	/* iolat: */
	struct iolat_layers *layers;
	struct io_slot *slots; /* operations in progress: the memory of the map itself */
	/* offcpu: */
	struct thread *threads; /* the memory of the map itself */
	uint64_t max_threads;
};

/* Defines type_open() and type_cut(), the ops of a kind with one skeleton, struct type. */
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

/* Sets the variables that the programs of every kind have. `size` is that of the ring in bytes. */
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
 * Loads and attaches the probe in the way that probe->hook says. 0, or negative errno: then nothing
 * of it is left in the kernel and probe->reason says why.
 */
int probe_try(struct probe *probe);

/* Sets the reason why a try failed, or why not a better way was taken. */
void probe_fail(struct probe *probe, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets the reason to the setting that refuses perf events, if r says that they are refused. */
void probe_fail_if_refused(struct probe *probe, int r);

/* The sizes of the maps that every kind has. */
struct probe_sizes {
	size_t key;	     /* bytes of a key of the window */
	size_t value;	     /* bytes of a row */
	uint32_t ring_bytes; /* stacks and records on their way to the daemon */
	uint32_t n_seen;     /* stacks that are known to be there already */
};

/* Before load: creates the window's maps and sizes those that every kind has. */
int probe_prepare(struct probe *probe, const struct probe_sizes *sizes);

/*
 * Attach programs where their sections say: one, or several in order up to the first that the
 * kernel refuses; one to a tracepoint by name; one as a kprobe that the broker opens, which the
 * program tells from others by the cookie. 0 or negative errno.
 */
int probe_attach_one(struct probe *probe, struct bpf_program *program);
int probe_attach_all(struct probe *probe, struct bpf_program *const *programs, size_t n);
int probe_attach_raw(struct probe *probe, struct bpf_program *program, const char *tracepoint);
int probe_attach_kprobe(struct probe *probe, struct bpf_program *program,
			const struct broker_kprobe *kprobe, uint64_t cookie);

/* Attaches the programs that report fork, exec and exit, if the probe is to follow processes. */
int probe_follow(struct probe *probe);

/* Returns the fd of a map of the loaded object, or -ENOENT; borrowed. */
int probe_map_fd(const struct probe *probe, const char *name);

/* Reads what the kernel knows about a loaded program. Its strings belong to the object. */
void probe_program_read(const struct bpf_program *program, struct probe_program *out);

/* Undoes a try: nothing is left in the kernel. */
void probe_unload(struct probe *probe);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_INTERNAL_H
#define STACKD_DAEMON_PROBE_INTERNAL_H

/*
 * What the files behind probe.h share: a probe of any kind (probe.c) and what is each kind's own
 * (probe_offcpu.c, probe_oncpu.c, probe_offwake.c, probe_iolat.c, probe_stackcount.c). The thread
 * that opens the probe.
 */

#include <bpf/libbpf.h>

#include "daemon/broker/broker.h"
#include "daemon/probe/probe.h"

struct io_slot;
struct iolat;
struct offcpu;
struct offwake;
struct oncpu;
struct probe_calls;
struct probe_events;
struct probe_layers;
struct stackcount;

enum { PROBE_MAX_LINKS = 128 };

/* One try; a kind's file fills skeleton and object, then cut. */
struct probe {
	struct probe_options options;
	union {
		struct offcpu *offcpu;
		struct oncpu *oncpu;
		struct offwake *offwake;
		struct stackcount *stackcount;
		struct iolat *iolat;
	};
	struct bpf_object *object; /* the skeleton's */
	struct cut *cut;
	struct bpf_link *links[PROBE_MAX_LINKS];
	size_t n_links;
	struct bpf_link *iterator;
	struct probe_events *events; /* oncpu: one a CPU */
	struct probe_calls *calls;   /* of calls: the functions */
	struct call_pace *pace;
	size_t n_functions;
	struct probe_layers *layers; /* iolat: what it can see, */
	struct io_slot *slots;	     /* and what is open: the map's own memory */
	int window_fds[2];
	struct thread *threads; /* the map's own memory */
	uint64_t max_threads;
	unsigned int hook;
	bool is_on;
	char reason[256];
};

/* libbpf's last warning on this thread: the one line that says what the kernel refused. */
const char *probe_warning(void);
void probe_warning_clear(void);

void probe_fail(struct probe *probe, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Before load: the window's maps, with the sizes of their members, the sizes of the others, and
 * whether it follows processes.
 */
int probe_prepare(struct probe *probe, size_t key_size, size_t value_size, uint32_t ring_bytes,
		  uint32_t n_seen);

/* After load: puts the window's maps and what the filter lists into place. */
int probe_finish(struct probe *probe);

/*
 * Attach programs where their sections say, one or several in order up to the first that is
 * refused; one to a tracepoint of several; one as a kprobe of a function, by the broker, which it
 * knows by the cookie.
 */
int probe_attach_one(struct probe *probe, struct bpf_program *program);
int probe_attach_all(struct probe *probe, struct bpf_program *const *programs, size_t n);
int probe_attach_raw(struct probe *probe, struct bpf_program *program, const char *tracepoint);
int probe_attach_kprobe(struct probe *probe, struct bpf_program *program,
			const struct broker_kprobe *kprobe, uint64_t cookie);

/* Where it is asked for, attaches the programs that tell of fork, exec and exit. */
int probe_follow(struct probe *probe);

int probe_map_fd(const struct probe *probe, const char *name);

/* What the kernel says of a loaded program. */
void probe_program_read(const struct bpf_program *program, struct probe_program *out);

/* Undoes a try: nothing is left in the kernel. */
void probe_unload(struct probe *probe);

/* The kinds: a probe that is loaded and attached, or a negative errno with the reason in it. */
int probe_offcpu_open(struct probe *probe);
void probe_offcpu_close(struct probe *probe);
void probe_offcpu_status(const struct probe *probe, struct probe_status *out);
int probe_oncpu_open(struct probe *probe);
void probe_oncpu_detach(struct probe *probe);
void probe_oncpu_close(struct probe *probe);
void probe_oncpu_refresh(struct probe *probe);
void probe_oncpu_status(const struct probe *probe, struct probe_status *out);
int probe_offwake_open(struct probe *probe);
void probe_offwake_close(struct probe *probe);
void probe_offwake_status(const struct probe *probe, struct probe_status *out);
int probe_stackcount_open(struct probe *probe);
void probe_stackcount_detach(struct probe *probe);
void probe_stackcount_close(struct probe *probe);
void probe_stackcount_status(const struct probe *probe, struct probe_status *out);
int probe_iolat_open(struct probe *probe);
void probe_iolat_close(struct probe *probe);
void probe_iolat_status(const struct probe *probe, struct probe_status *out);

#endif

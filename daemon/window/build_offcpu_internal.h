/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_BUILD_OFFCPU_INTERNAL_H
#define STACKD_DAEMON_WINDOW_BUILD_OFFCPU_INTERNAL_H

/*
 * The builder of offcpu's windows, shared by its three files: build_offcpu.c takes records and
 * rows, build_offcpu_threads.c keeps the state of each thread and its share of time, and
 * build_offcpu_waits.c puts waits into the window. Used on the drain's thread only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/base/hash_table.h"
#include "daemon/window/builder_ops.h"

/*
 * The identity that a thread had before an exec. It is kept until the end of the window after the
 * one in which the record of the exec arrived: the record of an exec that happens between a cut and
 * the reading of the map arrives a window early, and the last waits of the old identity are then in
 * the next window.
 */
struct past_identity {
	struct past_identity *next; /* the identity that the thread had before this one */
	struct thread_sums sums;    /* sums of the thread at the time of the exec */
	uint32_t epoch;		    /* epoch in which the exec happened */
	uint32_t exec_gen;
	/*
	 * tid and start_boot_ns before the exec. They differ from those after the exec if a thread
	 * other than the main thread called exec.
	 */
	uint32_t tid;
	uint64_t start_boot_ns;
	uint32_t image; /* index of the identity's image in the window in progress, or IMAGE_NONE */
	bool is_old;	/* a window was built since the record of the exec arrived */
	char comm[COMM_LEN];
};

/* The state of one thread, kept from one cut to the next. */
struct thread_state {
	uint64_t uid;
	struct thread thread;	 /* the thread as it was read at this cut, or as it ended */
	struct thread_sums last; /* the thread's sums at the start of the window in progress */
	struct thread_sums now;	 /* the thread's sums at the end of the window in progress */
	struct past_identity *past;
	uint32_t epoch;		/* epoch of the last cut at which the thread was read */
	uint32_t image;		/* index of its image in the window in progress, or IMAGE_NONE */
	uint64_t open_since_ns; /* start of the wait during which open_ustack was read */
	uint64_t open_ustack;
	uint64_t span_start_ns; /* start of the thread's last wait that arrived as a record */
	bool has_last;		/* `last` is set: the thread was read at an earlier cut */
	bool is_missing;	/* the thread was not read at the last cut */
	bool has_ended;
	int64_t end_ns;
	UT_hash_handle hh; /* handle in the hash table offcpu_builder.threads */
};

struct offcpu_builder {
	struct window_builder base;
	struct thread_state *threads; /* hash table of the states of all threads, by uid */
	struct record_wait *waits;    /* waits that arrived as records and are in no window yet */
	size_t n_waits;
	size_t waits_capacity;
	uint64_t unknown; /* number of waits of unknown threads since the last window */
};

/* build_offcpu_threads.c */

/*
 * Finds the state of the thread, or adds one. NULL when out of memory, which is counted as a loss.
 */
struct thread_state *thread_state_get(struct offcpu_builder *builder, uint64_t uid);

/* Forgets the thread and frees its state. */
void thread_state_drop(struct offcpu_builder *builder, struct thread_state *state);

/*
 * Adds the images of all threads that were read or have ended to the window in progress, each with
 * the sums that it has in this window.
 */
void threads_to_images(struct offcpu_builder *builder);

/*
 * Returns how long a thread that was made runnable at wake_ns has been without CPU quota in its
 * open wait up to at_ns, in ns.
 */
uint64_t thread_throttled_at(const struct thread *t, int64_t wake_ns, int64_t at_ns);

/*
 * Returns the index of the image to which `count` waits with this key belong. IMAGE_NONE if there
 * is no such image; the waits are then counted as lost.
 */
uint32_t wait_image(struct offcpu_builder *builder, const struct wait_key *key, uint64_t count);

/*
 * Prepares the states of all threads for the next window, and frees the states of threads that have
 * ended or vanished.
 */
void threads_roll(struct offcpu_builder *builder);

/* build_offcpu_waits.c */

/* Adds a row of the programs' map to the window. Serves as window_builder_ops.put_row of offcpu. */
int wait_row_to_window(struct window_builder *builder, const void *key, const void *value);

/* Adds the waits that threads were in at the cut, as the state of each thread shows them. */
void threads_to_opens(struct offcpu_builder *builder);

/*
 * Adds the waits that arrived as records: waits that have ended, and waits that were open at the
 * cut.
 */
void waits_to_window(struct offcpu_builder *builder);

#endif

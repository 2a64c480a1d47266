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
 * A thread's identity before an exec in this window or in the one before. It is kept one window
 * longer than the exec's own: an exec between a cut and the reading of the map arrives a window
 * early, and the last waits of the old identity are in the next window.
 */
struct past_identity {
	struct past_identity *next; /* the identity before this one */
	struct thread_sums sums;    /* the thread's sums at the exec */
	uint32_t epoch;		    /* the epoch in which the exec was */
	uint32_t exec_gen;
	/* Not those of the thread after the exec, if it was not the main thread that called it. */
	uint32_t tid;
	uint64_t start_boot_ns;
	uint32_t image; /* its image in the window in progress, or IMAGE_NONE */
	bool is_old;	/* there was a window since the exec arrived */
	char comm[COMM_LEN];
};

/* A thread from one cut to the next. */
struct thread_state {
	uint64_t uid;
	struct thread thread;	 /* the thread as it was read at this cut, or as it ended */
	struct thread_sums last; /* its sums at the start of the window in progress */
	struct thread_sums now;	 /* its sums at the end of that window */
	struct past_identity *past;
	uint32_t epoch;		/* epoch of the last cut at which it was read */
	uint32_t image;		/* in the window in progress, or IMAGE_NONE */
	uint64_t open_since_ns; /* the start of the wait that open_ustack was read in */
	uint64_t open_ustack;
	uint64_t span_start_ns; /* the start of the last wait that arrived as a record */
	bool has_last;		/* `last` is set: it was read at a cut before */
	bool is_missing;	/* it was not read at the last cut */
	bool has_ended;
	int64_t end_ns;
	UT_hash_handle hh; /* offcpu_builder.threads */
};

struct offcpu_builder {
	struct window_builder base;
	struct thread_state *threads; /* hash table of all threads, by uid */
	struct record_wait *waits;    /* waits that arrived as records and are in no window yet */
	size_t n_waits;
	size_t waits_capacity;
	uint64_t unknown; /* waits of unknown threads, since the last window */
};

/* build_offcpu_threads.c */

/* Finds the thread's state or adds it. NULL when out of memory, which is counted. */
struct thread_state *thread_state_get(struct offcpu_builder *builder, uint64_t uid);

/* Forgets the thread and frees its state. */
void thread_state_drop(struct offcpu_builder *builder, struct thread_state *state);

/* Adds the images of all threads that were read or have ended, with their shares of the window. */
void threads_to_images(struct offcpu_builder *builder);

/* The time without CPU quota, up to at_ns, of an open wait that was made runnable at wake_ns. */
uint64_t thread_throttled_at(const struct thread *t, int64_t wake_ns, int64_t at_ns);

/*
 * The image of `count` waits with this key. IMAGE_NONE if there is none: they are counted as lost.
 */
uint32_t wait_image(struct offcpu_builder *builder, const struct wait_key *key, uint64_t count);

/* Prepares the states for the next window, and forgets threads that have gone. */
void threads_roll(struct offcpu_builder *builder);

/* build_offcpu_waits.c */

/* Adds a row of the programs' map, as window_builder_ops.put_row. */
int wait_row_to_window(struct window_builder *builder, const void *key, const void *value);

/* Adds the waits in which threads were at the cut, as read from the threads. */
void threads_to_opens(struct offcpu_builder *builder);

/* Adds the waits that arrived as records: those that have ended, and those open at the cut. */
void waits_to_window(struct offcpu_builder *builder);

#endif

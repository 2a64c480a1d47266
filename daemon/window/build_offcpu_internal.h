/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_BUILD_OFFCPU_INTERNAL_H
#define STACKD_DAEMON_WINDOW_BUILD_OFFCPU_INTERNAL_H

/*
 * The builder of the windows of offcpu, in three files: build_offcpu.c takes the data of the BPF
 * programs, build_offcpu_threads.c keeps the state of each thread and computes its times in a
 * window, and build_offcpu_waits.c puts waits into the window. Used on the drain's thread only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/base/hash_table.h"
#include "daemon/window/builder_ops.h"

/*
 * The ids and the name that a thread had before an exec. If the exec comes after the end of a
 * window, but before the window's data is read, it is recorded one window early: the thread's last
 * waits before the exec are in the next window. Therefore a past identity is kept for one window
 * more than the one in which the record of the exec arrived.
 */
struct past_identity {
	struct past_identity *next; /* next older identity of the thread, or NULL */
	struct thread_sums sums;    /* times per state that the thread had spent up to the exec */
	uint32_t epoch;		    /* number of the window in which the exec happened */
	uint32_t exec_gen;
	/*
	 * tid and start_boot_ns before the exec. They differ from those after the exec if a thread
	 * other than the main thread called exec.
	 */
	uint32_t tid;
	uint64_t start_boot_ns;
	uint32_t image; /* index of the identity in window.images, or IMAGE_NONE */
	bool is_old;	/* true if a window was built since the exec was recorded */
	char comm[COMM_LEN];
};

/* The state of one thread, kept from one window to the next. */
struct thread_state {
	uint64_t uid;
	struct thread thread;	 /* the thread as it was read last, or as it ended */
	struct thread_sums last; /* the thread's times per state when the window began */
	struct thread_sums now;	 /* the thread's times per state when the window ended */
	struct past_identity *past;
	uint32_t epoch;		/* value of window_builder.epoch when the thread was last read */
	uint32_t image;		/* index of the thread in window.images, or IMAGE_NONE */
	uint64_t open_since_ns; /* start of the wait that open_ustack belongs to */
	uint64_t open_ustack;
	uint64_t span_start_ns; /* start of the thread's last wait that arrived as a record */
	bool has_last;		/* true if `last` is valid: the thread was read before */
	bool is_missing;	/* true if the thread was not found for the last window */
	bool has_ended;
	int64_t end_ns;
	UT_hash_handle hh; /* handle in the hash table offcpu_builder.threads */
};

struct offcpu_builder {
	struct window_builder base;
	struct thread_state *threads; /* hash table of all known threads; the key is uid */
	struct record_wait *waits;    /* records of waits whose end is in no window yet */
	size_t n_waits;
	size_t waits_capacity;
	uint64_t unknown; /* number of waits since the last window whose thread is unknown */
};

/* The functions from here on are defined in build_offcpu_threads.c. */

/*
 * Returns the state of the thread with this uid; adds one if there is none. NULL when out of
 * memory, which is counted as a loss.
 */
struct thread_state *thread_state_get(struct offcpu_builder *builder, uint64_t uid);

/* Removes the thread's state from the builder and frees it. */
void thread_state_drop(struct offcpu_builder *builder, struct thread_state *state);

/*
 * Adds the threads that were read for this window, or have ended, to window.images, with the time
 * that each spent in each state. A thread that called exec is added once for each program it ran.
 */
void threads_to_images(struct offcpu_builder *builder);

/*
 * Returns for how long a waiting thread, made runnable at wake_ns, has been without CPU quota up to
 * at_ns; in ns.
 */
uint64_t thread_throttled_at(const struct thread *t, int64_t wake_ns, int64_t at_ns);

/*
 * Returns the index in window.images of the thread that waits with this key belong to. IMAGE_NONE
 * if the thread is unknown or memory is out: `count` waits are then counted as lost.
 */
uint32_t wait_image(struct offcpu_builder *builder, const struct wait_key *key, uint64_t count);

/*
 * Prepares the states of all threads for the next window. Frees the states of threads that have
 * ended, or that were not found for two windows in a row.
 */
void threads_roll(struct offcpu_builder *builder);

/* The functions from here on are defined in build_offcpu_waits.c. */

/*
 * Adds one entry of the BPF map of waits to the window. This is window_builder_ops.put_row of
 * offcpu.
 */
int wait_row_to_window(struct window_builder *builder, const void *key, const void *value);

/*
 * Adds the waits that had not ended when the window ended, as the states of the threads show them.
 */
void threads_to_opens(struct offcpu_builder *builder);

/*
 * Adds the waits that arrived as records of the ring buffer: waits that ended in the window, and
 * waits that ended after it, which were open when the window ended.
 */
void waits_to_window(struct offcpu_builder *builder);

#endif

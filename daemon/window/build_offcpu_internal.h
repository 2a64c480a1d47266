/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_BUILD_OFFCPU_INTERNAL_H
#define STACKD_DAEMON_WINDOW_BUILD_OFFCPU_INTERNAL_H

/*
 * What the files behind assembler.h share: threads and their images (assembler_tracks.c), their
 * waits (assembler_waits.c) and the order of a cut (assembler.c). The drain's thread only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/hash_table.h"
#include "daemon/window/build_offcpu.h"
#include "daemon/window/image_cache.h"

/*
 * What a thread was before an exec in this window, or in the one before: an exec between a cut and
 * its reading is told too early, the image's last waits are in the next window.
 */
struct past_identity {
	struct past_identity *next; /* the one before it */
	struct thread_sums sums;    /* of the thread, at the exec */
	uint32_t epoch;		    /* the exec's */
	uint32_t exec_gen;
	uint32_t tid; /* not the new image's, nor the start, where the main thread was another */
	uint64_t start_boot_ns;
	uint32_t image;
	bool is_old;
	char comm[COMM_LEN];
};

struct thread_state {
	uint64_t uid;
	struct thread thread;	 /* as read at this cut, or as it ended */
	struct thread_sums last; /* at the start of the window */
	struct thread_sums now;	 /* at its end */
	struct past_identity *past;
	uint32_t epoch; /* the cut it was seen at */
	uint32_t image;
	uint64_t open_since_ns; /* the wait that open_ustack was read of */
	uint64_t open_ustack;
	uint64_t span_start_ns; /* of the last wait that came as a record */
	bool has_last;		/* was there at a cut before */
	bool is_missing;	/* nothing of it came at the last cut */
	bool has_ended;
	int64_t end_ns;
	UT_hash_handle hh; /* assembler.threads */
};

/* Grows by doubling; `n` records of `size`. */
struct list {
	void *items;
	size_t n;
	size_t room;
};

struct row {
	struct wait_key key;
	struct wait_sums sums;
};

struct assembler {
	struct process_table *processes;
	struct stack_table *stacks;
	int64_t min_wait_ns;
	struct thread_state *threads; /* by uid */
	struct list waits;	      /* struct record_wait, not yet in a window */
	struct list rows;	      /* struct row, of the cut in progress */
	int64_t start_ns;
	int64_t end_ns;
	uint32_t epoch;
	uint64_t dropped; /* for want of memory, since the last window */
	uint64_t unknown; /* waits of unknown threads, since then */
	struct window *window;
};

/* assembler_tracks.c: NULL and IMAGE_NONE when out of memory, which is counted */
struct thread_state *thread_state_get(struct assembler *assembler, uint64_t uid);

/* Forgets it. */
void thread_state_drop(struct assembler *assembler, struct thread_state *state);

/* Shares of time of all threads seen, into the window's images. */
void threads_to_images(struct assembler *assembler);

/* The image of these waits; counts them as lost when there is none. */
uint64_t thread_throttled_at(const struct thread *t, int64_t wake_ns, int64_t at_ns);
uint32_t wait_image(struct assembler *assembler, const struct wait_key *key, uint64_t count);

/* Ready for the next window. */
void threads_roll(struct assembler *assembler);

/* assembler_waits.c: rows, waits across cuts and waits that go on, into the window */
void rows_to_window(struct assembler *assembler);
void threads_to_opens(struct assembler *assembler);
void waits_to_window(struct assembler *assembler);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_BUILD_OFFCPU_INTERNAL_H
#define STACKD_DAEMON_WINDOW_BUILD_OFFCPU_INTERNAL_H

/*
 * The builder of the windows of offcpu, in four files, the lowest first: build_offcpu_threads.c
 * keeps the state of each thread and computes its times in a window, build_offcpu_spawns.c counts
 * the processes that begin and end, build_offcpu_waits.c puts waits into the window, and
 * build_offcpu.c takes the data of the BPF programs. Used on the drain's thread only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/layout.h"
#include "common/hash_table.h"
#include "daemon/window/builder_ops.h"

/*
 * The ids and the name that a thread had before an exec. A past identity is kept for one window
 * more than the window in which the record of the exec arrived. The reason: an exec may come after
 * the end of a window but before the window's data is read. Its record is then handled with this
 * window, although the thread's last waits before the exec are in the next one.
 */
struct past_identity {
	struct past_identity *next; /* next older identity of the thread, or NULL */
	struct thread_sums sums; /* time per state that was counted for the thread up to the exec */
	uint32_t epoch;		 /* number of the window in which the exec happened */
	uint32_t exec_gen;
	/*
	 * tid and start_boot_ns before the exec. They differ from those after the exec if a thread
	 * other than the main thread called exec.
	 */
	uint32_t tid;
	uint64_t start_boot_ns;
	uint32_t image; /* index of this entry in window.images, or IMAGE_NONE */
	bool is_old;	/* true if a window was built after the record of the exec had arrived */
	char comm[COMM_LEN];
};

/*
 * The exit of a process whose last thread has not left its CPU for good. A large part of the CPU
 * time of a process that lives for a millisecond is spent on freeing its memory after the exit.
 */
struct pending_exit {
	char parent[COMM_LEN];
	char comm[COMM_LEN];
	uint64_t time_ns; /* when the thread began to exit; the following are up to this moment */
	uint64_t on_ns;	  /* CPU time of the thread */
	uint64_t cpu_ns;  /* CPU time of the process, with that of the thread */
	uint64_t life_ns; /* time since the start of the process */
};

/*
 * A process with several threads that has exited. Each of the threads may have reported the exit.
 * Kept for one window more than the one in which the first report arrived.
 */
struct exited_process {
	uint64_t leader_boot_ns; /* the key is this and tgid */
	uint64_t tgid;
	uint64_t uid; /* the thread with which the exit is counted; 0: it has been counted */
	bool is_old;
	UT_hash_handle hh;
};

/* The state of one thread, kept from one window to the next. */
struct thread_state {
	uint64_t uid;
	struct thread thread; /* data of the thread as of the last read; if the thread has ended, as
				 of its end */
	struct thread_sums last; /* time per state that was counted for the thread up to the start
				    of the window */
	struct thread_sums now;	 /* time per state that was counted for the thread up to the end of
				    the window */
	struct past_identity *past;
	struct pending_exit *exit; /* NULL, unless the thread is the last one of its process and
				      exits */
	uint32_t epoch;		   /* value of window_builder.epoch when the thread was last read */
	uint32_t image;		   /* index of the thread's entry in window.images, or IMAGE_NONE */
	uint64_t open_since_ns; /* start of the wait during which the stack open_ustack was read */
	uint64_t open_ustack;
	/* start of the wait whose record arrived last */
	uint64_t span_start_ns;
	bool has_last;	 /* true if `last` is set: the thread was read for an earlier window */
	bool is_missing; /* true if the thread was not found when the last window was built */
	bool has_ended;
	int64_t end_ns;
	UT_hash_handle hh; /* handle in the hash table offcpu_builder.threads */
};

struct offcpu_builder {
	struct window_builder base;
	struct thread_state *threads; /* hash table of all known threads; the key is `uid`, the
					 number that the BPF programs gave the thread */
	struct record_wait *waits;    /* records of waits that ended after the last window */
	size_t n_waits;
	size_t waits_capacity;
	uint64_t unknown;	     /* number of waits of unknown threads, since the last window */
	struct window_spawns spawns; /* what was counted since the last window */
	struct exited_process *exited;
};

/* The functions from here on are defined in build_offcpu_threads.c. */

/*
 * Returns the state of the thread to which the BPF programs gave the number `uid`; adds one if
 * there is none. NULL when out of memory, which is counted as a loss.
 */
struct thread_state *thread_state_get(struct offcpu_builder *builder, uint64_t uid);

/*
 * Counts the exit of the process, if the thread is its last one. To be called when the thread has
 * ended, and before its state is freed.
 */
void thread_state_end(struct offcpu_builder *builder, struct thread_state *state);

/* Removes the thread's state from the builder and frees it. */
void thread_state_drop(struct offcpu_builder *builder, struct thread_state *state);

/*
 * Adds entries to window.images: one for each thread that was read for this window or has ended,
 * with the time that the thread spent in each state. A thread that called exec gets one entry for
 * each program it ran.
 */
void threads_to_images(struct offcpu_builder *builder);

/* Returns when a waiting thread became runnable; INT64_MAX if it sleeps, or is hidden. */
int64_t thread_woken_at(const struct thread *t);

/*
 * A waiting thread became runnable at wake_ns. Returns for how many ns after that, and before
 * at_ns, it could not run because its cgroup had no CPU quota.
 */
uint64_t thread_throttled_at(const struct thread *t, int64_t wake_ns, int64_t at_ns);

/*
 * Returns the index in window.images of the thread whose waits have this key. If the thread is
 * unknown, or when out of memory, counts `count` waits as lost and returns IMAGE_NONE.
 */
uint32_t wait_image(struct offcpu_builder *builder, const struct wait_key *key, uint64_t count);

/*
 * Prepares the states of all threads for the next window. Frees the states of threads that have
 * ended, or that were not found for two windows in a row.
 */
void threads_roll(struct offcpu_builder *builder);

/* The functions from here on are defined in build_offcpu_waits.c. */

/*
 * Adds one entry of the BPF map of waits to the window. Serves as the operation put_row() of struct
 * window_builder_ops.
 */
int wait_row_to_window(struct window_builder *builder, const void *key, const void *value);

/*
 * Adds the waits that had not ended when the window ended, according to the states of the threads.
 */
void threads_to_opens(struct offcpu_builder *builder);

/*
 * Adds the waits that arrived as records of the ring buffer. A wait that ended in the window is
 * added as such. A wait that ended later is added as one that had not ended when the window ended.
 */
void waits_to_window(struct offcpu_builder *builder);

/* The functions from here on are defined in build_offcpu_spawns.c. */

/*
 * Counts a fork, exec or exit of a process. An exit is counted when thread_state_end() is called
 * for the thread, if the thread is known.
 */
void spawns_add(struct offcpu_builder *builder, const struct record_process *record);

/* Moves what was counted to the window, with at most WINDOW_SPAWNS_MAX rows. */
void spawns_to_window(struct offcpu_builder *builder);

/* Frees what has been counted. */
void spawns_fini(struct offcpu_builder *builder);

#endif

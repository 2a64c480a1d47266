/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_FILTER_H
#define STACKD_DAEMON_SESSION_FILTER_H

/*
 * The filter of a session or a query. Checks the filter in a client's request, and then decides
 * which threads, states, waits and I/O operations pass. A struct filter is a plain value that
 * borrows the request's strings. All functions may be called on any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/wait_reason.h"
#include "daemon/window/window.h"
#include "proto/wire.h"
#include "proto/wire_error.h"

/* Task states and reasons of waits. */
struct filter_set {
	/*
	 * task states requested by name: bit 1 << N for the state with the index N, see
	 * task_state_index()
	 */
	uint32_t states;
	/*
	 * task states requested by number: mask of kernel state bits; a state is in the set if it
	 * has one of these bits
	 */
	uint32_t state_bits;
	bool has_states; /* the request names states */
	bool has_preempted;
	bool has_reasons; /* the request names reasons */
	/* bit N % 64 of word N / 64: the reason N is in the set */
	uint64_t reasons[(WAIT_REASON_N + 63) / 64];
};

struct filter {
	const struct wire_filter *wire; /* the filter as requested; NULL: everything passes */
	const struct filter *base;	/* in a query: the session's filter, which applies, too */
	int64_t min_ns;			/* the shortest wait that passes; 0: no minimum */
	int64_t max_ns;			/* the longest wait that passes; INT64_MAX: no maximum */
	struct filter_set wanted;	/* waits that pass; where it is empty, all of them do */
	struct filter_set refused;	/* waits that do not pass */
	bool drops_kernel;		/* the filter leaves kernel stacks out */
	bool drops_user;		/* the filter leaves user stacks out */
	/* True: the BPF programs have checked the cgroup at each event. stackd does not check it
	 * again, because the process may have changed its cgroup before stackd read it. */
	bool knows_cgroup;
	/*
	 * True: the BPF programs have checked thread ids and names. stackd cannot check them again:
	 * the rows of the windows are about whole processes, without the ids and names of threads.
	 */
	bool knows_threads;
};

/* Checks a requested filter and fills *filter from it. Returns 0, or -EINVAL with *error filled
 * (wire_error_clear() frees it). */
int filter_init(struct filter *filter, const struct wire_filter *wire, struct wire_error *error);

struct session_filter;

/* True if the filter, and the session's filter in it, let everything pass. */
bool filter_is_empty(const struct filter *filter);

/*
 * Converts the filter to the form that a session's BPF programs read. The cgroups that it names are
 * apart, see session_groups.c.
 */
void filter_to_programs(const struct filter *filter, struct session_filter *out);

/* True if the filter selects threads by id, name, cgroup or unit. A query with such a filter gets
 * an error if no thread matches. */
bool filter_selects_threads(const struct filter *filter);

/*
 * True if the entry `image` of window->images is folded (stands for several processes), one of its
 * processes has this pid, and the entry passes the filter. The pids that the filter names are
 * ignored.
 */
bool filter_has_member(const struct filter *filter, const struct window *window, uint32_t image,
		       const struct process_info *info, int32_t pid);

bool filter_has_image(const struct filter *filter, const struct window_image *image,
		      const struct process_info *info);

/* True if nothing but the members not_* of the filter leaves the thread out. */
bool filter_excludes_image(const struct filter *filter, const struct window_image *image,
			   const struct process_info *info);

/* True if the stacks of a wait or sample decide whether it passes, or how it is shown. */
bool filter_selects_functions(const struct filter *filter);
bool filter_has_state(const struct filter *filter, uint32_t state);

/* True if some reasons of waits do not pass, so that filter_has_reason() has to be asked. */
bool filter_selects_reasons(const struct filter *filter);
bool filter_has_reason(const struct filter *filter, enum wait_reason reason);
bool filter_has_duration(const struct filter *filter, uint64_t ns);

/*
 * Very short waits get no rows: they are recorded only in sums, without task states. Returns true
 * if the filter lets these sums pass, because it asks neither for states, nor for reasons, nor for
 * functions, nor for a shortest wait.
 */
bool filter_has_shorts(const struct filter *filter);

/* True if the filter lets these sums pass and would let each of the waits in them pass, too. */
bool filter_has_all_shorts(const struct filter *filter);

/*
 * True if the filter lets all waits of a row pass, so that filter_row() would not change its sums.
 * max_ns is the length of the row's longest wait.
 */
bool filter_has_whole_row(const struct filter *filter, uint64_t max_ns);

/* Sums over the waits of one row. After filter_row(), sums over only those waits whose length the
 * filter lets pass. */
struct filter_sums {
	WAIT_MEASURES(WAIT_MEASURE_MEMBER)
	uint64_t max_ns; /* longest wait in ns; if has_max is false, only a lower bound */
	bool has_max;
	/*
	 * if not 0: the waits were picked at random, and each stands for this time, so the longest
	 * one is not max_ns of the sum
	 */
	uint64_t stands_ns;
	bool is_estimate; /* the times are estimates, because the filter selects only some of the
			     row's waits */
	uint64_t buckets[WAIT_BUCKETS];
};

/*
 * Limits the sums in *sums to the waits whose length the filter lets pass. The exact length is
 * known only of the longest wait; of the others only the bucket is known, so the sums are
 * estimates. Never increases a sum. Returns false if no wait is left.
 */
bool filter_row(const struct filter *filter, struct filter_sums *sums);

/* Checks that the I/O layer, the operation and the disk that a filter names exist. Returns 0, or
 * -EINVAL with *error filled. */
int filter_io_check(const struct wire_filter *wire, struct wire_error *error);
bool filter_has_io(const struct filter *filter, const struct window_io *io);

#endif

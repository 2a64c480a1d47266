/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOLDER_HOLDER_H
#define STACKD_DAEMON_HOLDER_HOLDER_H

/*
 * Finds out, for threads that wait now, which object they wait for and who holds it, from /proc. A
 * helper process does it, because reading the memory of a process may hang in a page fault, where
 * nothing can end it; the caller gets what is known at a deadline. Only one such process is there
 * at a time; one that hangs is replaced when it has ended. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/wait_reason.h"

struct holder_search;

/* The name of the process, and of the program that main() gives to holder_main(). */
#define HOLDER_PROCESS_NAME "stackd-holders"

/*
 * LOOKUPS: the maximum number of threads that are looked up in one call. SHOWN: the maximum number
 * of holders of one object in an answer.
 */
enum { HOLDER_LOOKUPS = 64, HOLDER_SHOWN = 8, HOLDER_COMM = 16 };

/* A call of holder_find() ends after this time, for an answer and for a window. */
#define HOLDER_DEADLINE_NS	  (500 * NS_PER_MS)
#define HOLDER_WINDOW_DEADLINE_NS (250 * NS_PER_MS)

/* A call is for an answer to a client, or for a window that is recorded. */
enum holder_use { HOLDER_FOR_ANSWER, HOLDER_FOR_WINDOW };

/* A thread that waits, in the initial pid namespace. */
struct holder_question {
	int32_t pid;
	int32_t tid;
	uint64_t start_boot_ns; /* when the thread started, in ns since boot */
	enum wait_reason reason;
};

struct holder {
	int32_t pid;
	/* the thread, if it is known; 0: one of the threads of the process */
	int32_t tid;
	char comm[HOLDER_COMM];
};

struct holder_answer {
	bool is_known;	     /* the thread was looked up in time */
	char *object;	     /* what it waits for, see stackctl(1); NULL: not known */
	const char *unknown; /* why the holders are not known, static text; NULL: they are */
	struct holder holders[HOLDER_SHOWN];
	size_t n;    /* number of members of `holders` */
	size_t more; /* number of other holders */
	/*
	 * the holder waits in accept() for a client of TCP, and the thread's process has this
	 * listening socket, too, and no client: the workers of a server take turns
	 */
	bool is_turn;
	int32_t last_pid; /* the process that was added last; used while holders are looked up */
};

/* Reasons for which holders are not known, though they may be found; answers point to these texts.
 */
extern const char holder_went_on[], holder_took_too_long[], holder_not_reached[], holder_unread[];

/* True if the reason why holders are not known, also one that was stored, is one of these texts. */
bool holder_is_missed(const char *unknown);

/* True if holder_find() can find something out about waits for this reason. */
bool holder_knows(enum wait_reason reason);

/*
 * Returns why nobody can say who holds what threads wait for that wait for this reason, static
 * text; NULL for reasons that holder_find() knows, and for those that have no holders.
 */
const char *holder_never_known(enum wait_reason reason);

/*
 * Looks up n threads, at most HOLDER_LOOKUPS, and fills *answers, which the caller has set to 0 and
 * frees by holder_answers_fini(). Answers that were not found by the deadline of this use are not
 * known: they are looked up in order, so the first of them may be one that hangs. The CPU time
 * counts as what `use` says, and is stored in *cpu_ns_out, which may be NULL.
 * Returns 0; -EBUSY if another call is at work until the deadline, or if the process of an earlier
 * one hangs; or another negative errno if no process can be started.
 */
int holder_find(const struct holder_question *questions, size_t n, enum holder_use use,
		struct holder_answer *answers, int64_t *cpu_ns_out);
void holder_answers_fini(struct holder_answer *answers, size_t n);

/* Ends the process, unless it hangs. */
void holder_stop(void);

/* Runs the process until the daemon closes its end of HELPER_SOCKET_FD. Returns the exit code. */
int holder_main(void);

/*
 * Makes holder_find() use a netlink socket for sock_diag that the service manager has passed.
 * Returns false if it is no such socket; otherwise it is not closed any more. Without it, each call
 * opens one, which sees Unix sockets of the daemon's own network namespace only. Called before the
 * first holder_find().
 */
bool holder_diag_take(int fd);

/*
 * Returns what the look-ups of one call share, in the process that makes them; NULL without memory.
 * deadline_ns: of CLOCK_MONOTONIC. diag_fd: see holder_diag_take(); -1: none.
 */
struct holder_search *holder_search_new(int64_t deadline_ns, int diag_fd);
void holder_search_free(struct holder_search *search);

/* Looks up one thread in the calling process, which may hang. */
void holder_look_up(struct holder_search *search, const struct holder_question *question,
		    struct holder_answer *out);

#endif

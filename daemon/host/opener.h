/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_OPENER_H
#define STACKD_DAEMON_HOST_OPENER_H

/*
 * Opens files in processes of their own. Opening can hang for ever in the kernel, when a disk or a
 * server does not answer any more, and nothing ends a thread that hangs there. A process that does
 * not answer in time is killed and left behind, and another one takes its place. While it hangs,
 * and for a minute, nothing of that file system is opened. Any thread, if nothing else is said.
 */

#include <stdbool.h>
#include <stdint.h>

struct open_request;

/* The argv[0] by which the daemon's program knows that it was started to open files. */
#define OPENER_PROCESS_NAME "stackd-open"

/*
 * Maximum number of processes that hang. While there are this many, no file is opened, because each
 * could take another process.
 */
enum { OPENERS_HANGING_MAX = 16 };

enum { OPENER_PLACE_MAX = 256 };

struct opener_stats {
	unsigned int hanging;	      /* number of processes that were killed but cannot end */
	uint64_t hung;		      /* number of files whose opening took too long */
	uint64_t refused;	      /* number of files that were not opened because others hang */
	char place[OPENER_PLACE_MAX]; /* what was opened when a process hung last; else empty */
};

struct opener_options {
	const char *program; /* executed for the processes; NULL: the daemon's own */
	int64_t deadline_ns; /* time that opening a file may take; 0: the usual time */
	int64_t pause_ns;    /* time for which nothing of a file system that hung is opened; 0: the
				usual time */
};

/*
 * From now on, files are opened in other processes. These get the priority that urgent threads of
 * the calling thread have. Must be called before other threads open files.
 */
void opener_start(const struct opener_options *options);

/* Ends the processes. From now on, files are opened in the process that calls. */
void opener_stop(void);

/*
 * True if files are opened in other processes. It is false in a process that was forked from the
 * one that called opener_start().
 */
bool opener_is_on(void);

/*
 * Does the same as open_here() in another process. In addition, returns -ETIMEDOUT if opening takes
 * too long, or did so less than a minute ago on the same file system; -EBUSY if too many processes
 * hang or are busy; -EAGAIN if no process can be started at the moment.
 */
int opener_ask(const struct open_request *request, int at_fd);

/* Returns a text for an error of opener_ask(). */
const char *opener_error_text(int error);

void opener_stats(struct opener_stats *out);

/* Runs in the process that opens files. Returns its exit code. */
int opener_main(void);

#endif

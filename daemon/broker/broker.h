/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BROKER_BROKER_H
#define STACKD_DAEMON_BROKER_BROKER_H

/*
 * Opens perf events for a daemon that may not open them itself: with perf_event_paranoid=3,
 * Debian's default, the kernel refuses perf_event_open() to every process without CAP_SYS_ADMIN.
 * The broker first tries to open an event in this process. If the kernel refuses, it asks the
 * broker process, which was forked before the daemon gave CAP_SYS_ADMIN up and can open only the
 * kinds of events that are declared here. The daemon owns the broker; it starts it before any
 * thread, and then any thread may use it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct broker;

enum { BROKER_MAX_SYMBOL = 256, BROKER_MAX_PATH = 1024 };

enum broker_clock {
	BROKER_CPU_CLOCK, /* a timer; takes no sample while interrupts are off */
	BROKER_CYCLES,	  /* a hardware counter; -ENOENT or -EOPNOTSUPP if there is none */
	BROKER_CLOCK_N,
};

/* An event that samples one CPU at regular intervals, for a BPF program. Opened disabled. */
struct broker_sampling {
	enum broker_clock clock;
	unsigned int cpu;
	uint64_t frequency_hz; /* 1 to BROKER_MAX_FREQUENCY_HZ, or 0 if period is set */
	uint64_t period;       /* ns or cycles from one sample to the next, or 0 */
};

/* The kernel allows ten times as many samples, but then the CPUs do nothing but take them. */
enum { BROKER_MAX_FREQUENCY_HZ = 10000, BROKER_MIN_PERIOD = 100000 };

#define BROKER_MAX_PERIOD UINT64_C(1000000000000)

/* A probe on a kernel function, for a BPF program; it acts in every process. Opened disabled. */
struct broker_kprobe {
	const char *function; /* at most BROKER_MAX_SYMBOL - 1 bytes */
	uint64_t offset;      /* bytes from the start of the function; 0 for a return probe */
	bool is_return;	      /* at the return of the function instead of at offset */
};

/*
 * A probe in the file of a program or library; it acts in every process that maps the file. Opened
 * disabled.
 */
struct broker_uprobe {
	const char *path; /* absolute, at most BROKER_MAX_PATH - 1 bytes */
	uint64_t offset;  /* bytes from the start of the file */
	uint32_t counter; /* offset in the file of a counter of tracers (USDT semaphore), or 0 */
};

/*
 * Forks the broker process, and gives CAP_SYS_ADMIN up for good in this process if BPF works
 * without it. Call it while there is only one thread. A process without CAP_SYS_ADMIN forks
 * nothing, and gets a broker that opens only what the kernel allows this process. Returns 0,
 * -ENOMEM or another negative errno.
 */
int broker_start(struct broker **out);

/* Ends the broker process and waits for its exit. The descriptors that it opened stay valid. */
struct broker *broker_stop(struct broker *broker);
void broker_stopp(struct broker **broker);

/*
 * Each of these opens one event. *fd_out is close-on-exec and owned by the caller. With a broker of
 * NULL only this process tries. Returns 0; -EINVAL for a field out of its range; -EACCES or -EPERM
 * when the kernel refuses (see broker_refusal()); or another errno of the kernel: -ENOENT for a
 * function or counter that does not exist, -ENODEV or -EINVAL for a CPU that is offline or not
 * possible.
 */
int broker_open_sampling(struct broker *broker, const struct broker_sampling *what, int *fd_out);
int broker_open_kprobe(struct broker *broker, const struct broker_kprobe *what, int *fd_out);
int broker_open_uprobe(struct broker *broker, const struct broker_uprobe *what, int *fd_out);

/*
 * Writes one line to out (size bytes) that says why the kernel refuses perf events, and what to do
 * about it. It names the sysctl and its value.
 */
void broker_refusal(char *out, size_t size);

#endif

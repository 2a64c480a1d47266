/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BROKER_BROKER_H
#define STACKD_DAEMON_BROKER_BROKER_H

/*
 * Opens perf events for a daemon that may not open them itself: with perf_event_paranoid=3,
 * Debian's default, the kernel refuses perf_event_open() to every process without CAP_SYS_ADMIN.
 * The broker first tries to open an event in this process. If the kernel refuses, it asks the
 * broker process, a child that was forked before the daemon gave up CAP_SYS_ADMIN. That process can
 * open only the kinds of events that are declared here. The daemon owns the broker and starts it
 * while there is only one thread; later any thread may use it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct broker;

enum { BROKER_MAX_SYMBOL = 256, BROKER_MAX_PATH = 1024 };

enum broker_clock {
	BROKER_CPU_CLOCK, /* a timer; takes no samples while interrupts are disabled on the CPU */
	/* a hardware counter; opening it returns -ENOENT or -EOPNOTSUPP if there is none */
	BROKER_CYCLES,
	BROKER_CLOCK_N,
};

/*
 * An event that takes samples on one CPU at regular intervals and runs a BPF program for each. It
 * is disabled when it is opened.
 */
struct broker_sampling {
	enum broker_clock clock;
	unsigned int cpu;
	/* samples per second, 1 to BROKER_MAX_FREQUENCY_HZ; or 0 if period is set */
	uint64_t frequency_hz;
	/* ns or cycles from one sample to the next, or 0 if frequency_hz is set */
	uint64_t period;
};

/*
 * The kernel would allow ten times this frequency, but the CPUs would do nothing but take samples.
 */
enum { BROKER_MAX_FREQUENCY_HZ = 10000, BROKER_MIN_PERIOD = 100000 };

#define BROKER_MAX_PERIOD UINT64_C(1000000000000)

/*
 * A probe on a kernel function that runs a BPF program, whichever process calls the function. It is
 * disabled when it is opened.
 */
struct broker_kprobe {
	const char *function; /* name of the kernel function, at most BROKER_MAX_SYMBOL - 1 bytes */
	/* position of the probe, in bytes from the start of the function; 0 for a return probe */
	uint64_t offset;
	/* true: probe the return of the function; false: probe the instruction at offset */
	bool is_return;
};

/*
 * A probe in the file of a program or library that runs a BPF program in every process that maps
 * the file. It is disabled when it is opened.
 */
struct broker_uprobe {
	const char *path; /* absolute path of the file, at most BROKER_MAX_PATH - 1 bytes */
	uint64_t offset;  /* position of the probe, in bytes from the start of the file */
	/* offset in the file of the USDT semaphore, a counter of tracers, or 0 if there is none */
	uint32_t counter;
};

/*
 * Forks the broker process. Then gives up CAP_SYS_ADMIN for good in this process, if BPF works
 * without it. Call it while there is only one thread. If this process has no CAP_SYS_ADMIN, nothing
 * is forked, and the broker opens only events that the kernel allows this process. Returns 0,
 * -ENOMEM or another negative errno.
 */
int broker_start(struct broker **out);

/*
 * Ends the broker process and waits for its exit. Descriptors that it opened remain valid. Returns
 * NULL.
 */
struct broker *broker_stop(struct broker *broker);
void broker_stopp(struct broker **broker);

/*
 * Each of these functions opens one event. *fd_out is close-on-exec and owned by the caller. If
 * broker is NULL, only this process tries to open the event. Returns 0; -EINVAL for a field out of
 * its range; -EACCES or -EPERM if the kernel refuses (see broker_refusal()); or another negative
 * errno of the kernel: -ENOENT for a function or counter that does not exist, -ENODEV or -EINVAL
 * for a CPU that is offline or impossible.
 */
int broker_open_sampling(struct broker *broker, const struct broker_sampling *what, int *fd_out);
int broker_open_kprobe(struct broker *broker, const struct broker_kprobe *what, int *fd_out);
int broker_open_uprobe(struct broker *broker, const struct broker_uprobe *what, int *fd_out);

/*
 * Writes one line to out (size bytes) that says why the kernel refuses perf events and how to
 * change that. It names the sysctl and its value.
 */
void broker_refusal(char *out, size_t size);

#endif

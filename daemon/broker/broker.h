/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BROKER_BROKER_H
#define STACKD_DAEMON_BROKER_BROKER_H

/*
 * Opens perf events for a daemon that may not open them itself: with perf_event_paranoid=3,
 * Debian's default, the kernel refuses perf_event_open() to every process without CAP_SYS_ADMIN.
 * The daemon first tries to open an event. If the kernel refuses, it asks the broker process, a
 * child that was forked before the daemon gave up CAP_SYS_ADMIN. The broker process can open only
 * the kinds of events that are declared here. The daemon owns struct broker and starts the process
 * while there is only one thread; later any thread may use it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct broker;

enum { BROKER_MAX_SYMBOL = 256, BROKER_MAX_PATH = 1024 };

enum broker_clock {
	BROKER_CPU_CLOCK, /* the kernel's timer, which takes no samples while interrupts are
			     disabled on the CPU */
	/* the CPU's cycle counter; opening it returns -ENOENT or -EOPNOTSUPP if there is none */
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
	/* samples per second, 1 to BROKER_MAX_FREQUENCY_HZ; 0 if `period` is set */
	uint64_t frequency_hz;
	/* ns or cycles from one sample to the next; 0 if frequency_hz is set */
	uint64_t period;
};

/*
 * Limits of sampling. The kernel would allow ten times this frequency, but the CPUs would do
 * nothing but take samples.
 */
enum { BROKER_MAX_FREQUENCY_HZ = 10000, BROKER_MIN_PERIOD = 100000 };

#define BROKER_MAX_PERIOD UINT64_C(1000000000000)

/*
 * A probe on a kernel function. It runs a BPF program, whichever process calls the function. It is
 * disabled when it is opened.
 */
struct broker_kprobe {
	const char *function; /* name of the kernel function, at most BROKER_MAX_SYMBOL - 1 bytes */
	/* position of the probe, in bytes from the start of the function; 0 for a return probe */
	uint64_t offset;
	/*
	 * true: the probe is on the return of the function; false: on the instruction at `offset`
	 */
	bool is_return;
};

/*
 * A probe in the file of a program or library. It runs a BPF program in every process that maps the
 * file. It is disabled when it is opened.
 */
struct broker_uprobe {
	const char *path; /* absolute path of the file, at most BROKER_MAX_PATH - 1 bytes */
	uint64_t offset;  /* position of the probe, in bytes from the start of the file */
	/*
	 * offset in the file of the USDT semaphore, a counter that tracers raise; 0: there is none
	 */
	uint32_t counter;
};

/*
 * Forks the broker process. Then gives up CAP_SYS_ADMIN for good in the calling process, if BPF
 * works without it. Must be called while there is only one thread. If the calling process has no
 * CAP_SYS_ADMIN, nothing is forked, and the broker opens only events that the kernel allows to the
 * calling process. Returns 0, -ENOMEM or another negative errno.
 */
int broker_start(struct broker **out);

/*
 * Ends the broker process and waits for its exit. Descriptors that it opened remain valid. Returns
 * NULL.
 */
struct broker *broker_stop(struct broker *broker);
void broker_stopp(struct broker **broker);

/*
 * broker_open_sampling(), broker_open_kprobe() and broker_open_uprobe() open one event. *fd_out is
 * close-on-exec and owned by the caller. If broker is NULL, only the calling process tries to open
 * the event. Returns 0; -EINVAL for a field out of its range; -EACCES or -EPERM if the kernel
 * refuses (see broker_refusal()); or another negative errno of the kernel: -ENOENT for a function
 * or counter that does not exist, -ENODEV or -EINVAL for a CPU that is offline or impossible.
 */
int broker_open_sampling(struct broker *broker, const struct broker_sampling *what, int *fd_out);
int broker_open_kprobe(struct broker *broker, const struct broker_kprobe *what, int *fd_out);
int broker_open_uprobe(struct broker *broker, const struct broker_uprobe *what, int *fd_out);

/*
 * Returns a static text if the broker process has ended by itself, else NULL. Reaps the process and
 * logs the text when it finds this out. Nobody can start another one: the daemon has given up
 * CAP_SYS_ADMIN. Does not wait.
 */
const char *broker_problem(struct broker *broker);

/*
 * Writes one line to `out`, which has room for `size` bytes. The line says why the kernel refuses
 * perf events: the broker process has ended, or which sysctl to set to which value to change that.
 */
void broker_refusal(struct broker *broker, char *out, size_t size);

#endif

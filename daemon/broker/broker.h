/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BROKER_BROKER_H
#define STACKD_DAEMON_BROKER_BROKER_H

/*
 * Perf events for a daemon that may not open them itself: Debian's perf_event_paranoid=3 refuses
 * perf_event_open() to anybody without CAP_SYS_ADMIN. A request goes in, a descriptor comes out:
 * opened here where the kernel allows it, else by a small process, forked before the daemon gave
 * CAP_SYS_ADMIN up, that can do nothing but open the events named here. Owned by main; started
 * before any thread, used by any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct broker;

enum { BROKER_MAX_SYMBOL = 256, BROKER_MAX_PATH = 1024 };

enum broker_clock {
	BROKER_CPU_CLOCK, /* hrtimer: everywhere, blind where interrupts are off */
	BROKER_CYCLES,	  /* hardware counter: -ENOENT or -EOPNOTSUPP where there is none */
	BROKER_CLOCK_N,
};

/* Samples of whatever runs on one CPU, for a BPF program. Opened disabled. */
struct broker_sampling {
	enum broker_clock clock;
	unsigned int cpu;
	uint64_t frequency_hz; /* 1 to BROKER_MAX_FREQUENCY_HZ, or 0 and a period */
	uint64_t period;       /* ns, or cycles, from one sample to the next */
};

/* Ten times as often, which the kernel would allow, the CPUs come to nothing else. */
enum { BROKER_MAX_FREQUENCY_HZ = 10000, BROKER_MIN_PERIOD = 100000 };

#define BROKER_MAX_PERIOD UINT64_C(1000000000000)

/* A probe on a kernel function, in every process, for a BPF program. Opened disabled. */
struct broker_kprobe {
	const char *function; /* at most BROKER_MAX_SYMBOL - 1 bytes */
	uint64_t offset;      /* from its start; 0 for a return probe */
	bool is_return;
};

/* A probe in a program's or library's file, in every process that maps it. Opened disabled. */
struct broker_uprobe {
	const char *path; /* absolute, at most BROKER_MAX_PATH - 1 bytes */
	uint64_t offset;  /* in the file */
	uint32_t counter; /* where in it the program counts who traces it; 0: nowhere */
};

/*
 * Forks the process and, in this one, gives CAP_SYS_ADMIN up for good where BPF can do without it.
 * Only while there is one thread. Where this process has no CAP_SYS_ADMIN to pass on there is
 * nothing to fork: that too gives a broker, which opens what the kernel allows. -ENOMEM, or the
 * errno of what failed.
 */
int broker_start(struct broker **out);

/* Ends the process, and waits for it. Descriptors that it opened stay good. */
struct broker *broker_stop(struct broker *broker);
void broker_stopp(struct broker **broker);

/*
 * Each opens one event, close-on-exec, owned by the caller; a broker of NULL only tries itself.
 * Returns 0, -EINVAL for a field out of its range, -EACCES or -EPERM when it is refused (see
 * broker_refusal()), or what else the kernel said: -ENOENT for a function or counter it does not
 * have, -ENODEV or -EINVAL for a CPU that is offline or not possible.
 */
int broker_open_sampling(struct broker *broker, const struct broker_sampling *what, int *fd_out);
int broker_open_kprobe(struct broker *broker, const struct broker_kprobe *what, int *fd_out);
int broker_open_uprobe(struct broker *broker, const struct broker_uprobe *what, int *fd_out);

/* What to do about a refusal, one line in out (size bytes): names the sysctl and its value. */
void broker_refusal(char *out, size_t size);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_PRESSURE_H
#define STACKD_DAEMON_HOST_PRESSURE_H

/*
 * Reads the kernel's pressure stall information (PSI): for how long tasks stalled because they
 * lacked CPUs, I/O or memory. The kernel counts it for the whole host (/proc/pressure, since 4.20)
 * and for each control group of cgroup v2 (cpu.pressure and so on). Reading needs no privilege. No
 * state; any thread.
 */

#include <stddef.h>
#include <stdint.h>

enum pressure_resource { PRESSURE_CPU, PRESSURE_IO, PRESSURE_MEMORY, PRESSURE_N };

/*
 * Times in ns since the boot, or since the control group was made. Both arrays are indexed by enum
 * pressure_resource.
 */
struct pressure {
	uint64_t some_ns[PRESSURE_N]; /* at least one task stalled */
	/* all tasks that had something to do stalled; always 0 for the CPUs of the host */
	uint64_t full_ns[PRESSURE_N];
};

/*
 * Reads the totals out of the text of a pressure file. Leaves *full_ns at 0 if the text has no line
 * "full", as the file of the CPUs before Linux 5.13. Returns 0, or -EBADMSG if the text is no
 * pressure file.
 */
int pressure_parse(const char *text, uint64_t *some_ns, uint64_t *full_ns);

/*
 * Reads the three files cpu, io and memory, with `suffix` after each name, in a directory. Returns
 * 0 or a negative errno: -ENOENT if the kernel has no PSI or was booted with psi=0; -EOPNOTSUPP if
 * it is off for this control group (cgroup.pressure is 0).
 */
int pressure_read(int dir_fd, const char *suffix, struct pressure *out);

struct pressure_unit {
	uint64_t id; /* number of the control group in the kernel, which no later group gets */
	char *path;  /* path of the control group, such as /system.slice/cron.service; owned */
	struct pressure totals;
};

struct pressure_units {
	struct pressure_unit *v; /* sorted by path */
	size_t n;
	size_t capacity;
	size_t beyond;	   /* number of units that were not read, because there are too many */
	size_t unreadable; /* number of units whose files could not be read */
};

/*
 * Reads the pressure of the units: the control groups below the directory `mount` that are not
 * slices, without the groups in them. Slices are only searched for units. Reads at most `max`
 * units. Returns 0, -ENOMEM, or the error with which `mount` could not be opened. The caller calls
 * pressure_units_fini() in any case.
 */
int pressure_read_units(const char *mount, size_t max, struct pressure_units *out);
void pressure_units_fini(struct pressure_units *units);

#endif

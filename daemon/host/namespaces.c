/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/namespaces.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base.h"
#include "common/pid_namespace.h"

/* Finds a clock that the time namespace moves. Returns its offset in seconds, 1 for less; 0: none.
 */
static int64_t clock_offset(char name[static 16])
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/timens_offsets", "re");
	int64_t seconds, ns;

	while (f && fscanf(f, "%15s %" SCNd64 " %" SCNd64, name, &seconds, &ns) == 3)
		if (seconds || ns)
			return seconds ? seconds : 1;
	return 0;
}

int namespaces_check(char *reason, size_t size)
{
	char name[16];
	int64_t offset = clock_offset(name);

	if (offset) {
		snprintf(
			reason, size,
			"in a time namespace: its clock %s is %" PRId64
			" s from the kernel's, whose times BPF programs record; start stackd outside",
			name, offset);
		return -EOPNOTSUPP;
	}
	if (pid_namespace_is_first())
		return 0;
	snprintf(reason, size,
		 "in a pid namespace, as of a container: BPF programs record the pids of the host; "
		 "start stackd on the host, or in a container with the host's pids (--pid=host)");
	return -EOPNOTSUPP;
}

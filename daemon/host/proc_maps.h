/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_PROC_MAPS_H
#define STACKD_DAEMON_HOST_PROC_MAPS_H

/*
 * Parses the executable mappings of /proc/PID/maps. They are sorted by address and owned by the
 * caller; no state, any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Most mappings of one process: a JIT may make very many. The rest is left out and reported. */
#define PROC_MAPS_MAX 65536

struct proc_mapping {
	uint64_t start, end; /* [start, end) */
	uint64_t pgoff;	     /* offset in the file, in bytes */
	dev_t dev;
	uint64_t inode;	 /* 0: no file is mapped */
	char *path;	 /* without " (deleted)"; "" for anonymous memory */
	bool is_deleted; /* the path named no file, or another one, when maps was read */
};

struct proc_maps {
	struct proc_mapping *items;
	size_t n;
	bool is_truncated; /* there were more than PROC_MAPS_MAX */
};

/*
 * Reads to the end of the stream. Returns 0, -EBADMSG for a line that is not one of maps, -ENOMEM,
 * or the error of reading. The result is to be freed by proc_maps_fini().
 */
int proc_maps_read(FILE *in, struct proc_maps *out);

void proc_maps_fini(struct proc_maps *mappings);

#endif

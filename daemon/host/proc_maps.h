/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_PROC_MAPS_H
#define STACKD_DAEMON_HOST_PROC_MAPS_H

/*
 * What a process may execute: in goes the text of /proc/PID/maps, out come its executable
 * mappings, sorted by address. Owned by the caller; no state, any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* A JIT may make many; more than this of one process are left out and reported. */
#define PROC_MAPS_MAX 65536

struct proc_mapping {
	uint64_t start, end; /* [start, end) */
	uint64_t pgoff;	     /* bytes into the file */
	dev_t dev;
	uint64_t inode;	 /* 0: no file */
	char *path;	 /* without " (deleted)"; "" for anonymous memory */
	bool is_deleted; /* the path named nothing, or another file, when this was read */
};

struct proc_maps {
	struct proc_mapping *items;
	size_t n;
	bool is_truncated; /* there were more than PROC_MAPS_MAX */
};

/*
 * Reads to the end of in. -EBADMSG for a line that is none of maps', -ENOMEM, or the error of
 * reading. Free the result with proc_maps_fini().
 */
int proc_maps_read(FILE *in, struct proc_maps *out);

void proc_maps_fini(struct proc_maps *mappings);

#endif

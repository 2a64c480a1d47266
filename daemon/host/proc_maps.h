/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_PROC_MAPS_H
#define STACKD_DAEMON_HOST_PROC_MAPS_H

/*
 * Parses the executable mappings in /proc/PID/maps and sorts them by address, and lines of shared
 * memory one by one. The caller owns the result; no state, any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * Maximum memory of the mappings that are read from one process, in bytes: some 16,000 mappings, or
 * fewer if they have many long paths. Users choose both. Those at higher addresses are left out.
 */
#define PROC_MAPS_BYTES_MAX (1024 * 1024)

/*
 * Maximum of what is read for that, in bytes. The kernel takes some 16 ns for each, and a process
 * that takes seconds to read changes meanwhile, so that it would be read again and again. A search
 * engine that maps 250,000 files of its index, where its libraries come last, has some 30 MB.
 */
#define PROC_MAPS_TEXT_MAX (32 * 1024 * 1024)

struct proc_mapping {
	uint64_t start, end; /* virtual addresses; end is excluded */
	uint64_t pgoff;	     /* offset in the file, in bytes */
	dev_t dev;
	uint64_t inode; /* inode of the mapped file; 0: no file is mapped */
	/*
	 * path of the file, without " (deleted)"; "" for anonymous memory. A shared_text, which is
	 * the same for neighbours with the same path
	 */
	const char *path;
	bool is_deleted; /* the file was no longer at this path when maps was read */
};

struct proc_maps {
	struct proc_mapping *items;
	size_t n;
	bool is_truncated; /* mappings were left out because of these limits */
};

/*
 * Reads the mappings from a stream of the format of /proc/PID/maps. Returns 0 and *out, which
 * proc_maps_fini() frees; -EBADMSG if a line has another format; -ENOMEM; or the error of reading.
 */
int proc_maps_read(FILE *in, struct proc_maps *out);

void proc_maps_fini(struct proc_maps *mappings);

/*
 * Returns the memory of mapping i in bytes, with its path unless that is also the path of the
 * mapping before it.
 */
size_t proc_mapping_bytes(const struct proc_maps *mappings, size_t i);

/*
 * Parses a line of /proc/PID/maps, but for its path, into *out. False if the memory is not shared,
 * or the line has another format.
 */
bool proc_maps_shared_parse(const char *line, struct proc_mapping *out);

#endif

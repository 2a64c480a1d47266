/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_TARGET_H
#define STACKD_DAEMON_PROBE_TARGET_H

/*
 * Finds the functions and tracepoints of this host that match a user's pattern, for sessions that
 * record calls. The caller owns the results. No state; any thread. A search reads files and may
 * take seconds.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/probe/regex.h"

struct parser;

enum target_kind {
	TARGET_FUNCTION,   /* a kernel function, as in vfs_* or p:vfs_* */
	TARGET_TRACEPOINT, /* a kernel tracepoint, as in t:sched:sched_process_exec */
	/* a function of a program or library, as in u:c:malloc or u:/usr/bin/bash:readline */
	TARGET_USER,
	/* a static probe (USDT) of a program or library, as in usdt:stdc++:throw */
	TARGET_USDT,
};

struct target_pattern {
	enum target_kind kind;
	char *scope; /* tracepoint's category, or name of the program or library; may be NULL */
	char *name;
	/* `name` as a regular expression, which may match a part of a function's name. NULL: `name`
	 * is a whole name in which * stands for any text. */
	struct regex *regex;
	/* True: the user is not root. See target_find_user(). */
	bool is_restricted;
	/* the processes that parse programs and libraries; NULL, in tests: this process parses them
	 */
	struct parser *parser;
	/* True: also opens programs and libraries on remote file systems, see remote_mounts.h. */
	bool reads_remote;
};

struct target {
	char *name;
	uint64_t address; /* address in the kernel, or offset in the file of a program or library */
	uint32_t counter; /* TARGET_USDT: file offset of the probe's counter; 0: it has none */
};

/*
 * Ids of processes or threads. Programs and libraries are searched for among the files that these
 * processes and threads see.
 */
struct target_tasks {
	const int64_t *ids;
	size_t n;
};

struct targets {
	enum target_kind kind;
	char *path; /* path of the program or library; NULL: the functions are in the kernel */
	/*
	 * the program or library in which the functions were found: probes are attached to this
	 * file, as its owner may put another one at the path meanwhile. Owned; 0: there is none
	 */
	int fd;
	struct target *v;
	size_t n;
	size_t capacity;
	size_t forbidden; /* number of matches that cannot be traced; v[] omits them */
	/*
	 * TARGET_USER: one of these, which is chosen at run time (IFUNC) from several
	 * implementations; NULL: there is none
	 */
	char *chosen;
};

/*
 * Parses a pattern. 0, -ENOMEM or -EINVAL. On -EINVAL, `why` (size bytes) gets one line that says
 * what is wrong, where, and what would be right.
 */
int target_parse(const char *text, bool is_regex, struct target_pattern *out, char *why,
		 size_t size);
void target_pattern_fini(struct target_pattern *pattern);

/*
 * True if the pattern matches the name of a function or tracepoint. After a search with a regular
 * expression, regex_is_costly() says whether the result is valid.
 */
bool target_fits(const struct target_pattern *pattern, const char *name);

/* True if the text matches the pattern `glob`, in which * stands for any text. */
bool target_glob(const char *glob, const char *text);

/*
 * Finds all kernel functions that match the pattern, sorted by name. If several of them have the
 * same address, keeps one. Returns 0 even if it finds none. On a negative errno, `why` (size bytes)
 * gets one line that says what failed. For tracepoints see tracepoints.h.
 */
int target_find_functions(const struct target_pattern *pattern, struct targets *out, char *why,
			  size_t size);

/*
 * Finds all functions that match the pattern in the program or library that the pattern names. If a
 * file has no such function, looks for static probes (USDT) in it, as other tools do; out->kind
 * says which of the two were found. Several files may go by the name in the pattern: if more than
 * one of them has a match, returns -EINVAL. `tasks` may be NULL.
 *
 * A uprobe writes a breakpoint into the code of every process that runs the file. Inside an
 * instruction, for example of a setuid program, it would change what the program does. Therefore,
 * if pattern->is_restricted, addresses are refused, and so are files that others than root can
 * change or replace, as their symbols may be false. Files that not everybody may read are refused,
 * too: the names of their functions would tell what is in them.
 */
int target_find_user(const struct target_pattern *pattern, const struct target_tasks *tasks,
		     struct targets *out, char *why, size_t size);

/* True if a search that failed with this error may succeed later: the pattern is not to blame. */
bool target_error_is_passing(int error);

/*
 * Looks up each of the n kernel symbols by its whole name and sets its address. The address stays 0
 * if the kernel has no such symbol. Reads the kernel's symbol table once. 0, or a negative errno.
 */
int target_addresses(struct target *symbols, size_t n);

/*
 * Finds the address in the file of the implementation of targets->chosen that this host uses: only
 * if stackd uses the same file, as it does libc. Returns 0 if it is not known.
 */
uint64_t targets_chosen_address(const struct targets *targets);

/* Adds a target with a copy of the name. 0 or -ENOMEM. */
int targets_add(struct targets *targets, const char *name, uint64_t address);

/*
 * Sorts targets by name. If several targets have the same address, keeps the one with the shortest
 * name.
 */
void targets_settle(struct targets *targets);
void targets_fini(struct targets *targets);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_TARGET_H
#define STACKD_DAEMON_PROBE_TARGET_H

/*
 * Finds the functions and tracepoints of this host that match a pattern as a user writes it, for
 * sessions that count calls. The caller owns the results. No state; any thread. A search reads
 * files and may take seconds.
 */

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum target_kind {
	TARGET_FUNCTION,   /* a kernel function: vfs_*, p:vfs_* */
	TARGET_TRACEPOINT, /* t:sched:sched_process_exec */
	/* a function of a program or library: u:c:malloc, c:malloc, u:/usr/bin/bash:readline */
	TARGET_USER,
	/* a static probe in one: usdt:stdc++:throw, usdt:stdc++:libstdcxx:throw */
	TARGET_USDT,
};

struct target_pattern {
	enum target_kind kind;
	char *scope; /* the tracepoint's category, or the program or library; else NULL */
	char *name;
	/* True: a POSIX extended regular expression that matches anywhere in a name. False: a whole
	 * name in which * stands for any text. */
	bool is_regex;
	regex_t regex;
};

struct target {
	char *name;
	uint64_t address; /* in the kernel; in a program or library: the offset in its file */
	uint32_t counter; /* TARGET_USDT: file offset of the counter that enables it, or 0 */
};

/* Processes or threads, by id: a name of a program or library is looked up as they see it. */
struct target_tasks {
	const int64_t *ids;
	size_t n;
};

struct targets {
	enum target_kind kind;
	char *path; /* of the program or library that has them; NULL: the kernel has them */
	struct target *v;
	size_t n;
	size_t capacity;
	size_t forbidden; /* how many match but cannot be traced; these are not in v */
};

/*
 * Parses a pattern. 0, -ENOMEM, or -EINVAL with one line in why (size bytes) that says what is
 * wrong, where, and what would be right.
 */
int target_parse(const char *text, bool is_regex, struct target_pattern *out, char *why,
		 size_t size);
void target_pattern_fini(struct target_pattern *pattern);

/* True if the pattern matches the name of a function or event. */
bool target_fits(const struct target_pattern *pattern, const char *name);

/* True if the text matches glob, in which * stands for any text. */
bool target_glob(const char *glob, const char *text);

/*
 * Finds all kernel functions that match, each address once, sorted by name. 0 also if there are
 * none; negative errno with one line in why. tracepoints.h finds tracepoints.
 */
int target_find_functions(const struct target_pattern *pattern, struct targets *out, char *why,
			  size_t size);

/*
 * Finds all functions of a program or library that match. If several files have its name, it takes
 * the only one with a match, and fails with -EINVAL if more have one. A file without such a
 * function is searched for static probes, as other tools do; out->kind says which it was. tasks may
 * be NULL.
 */
int target_find_user(const struct target_pattern *pattern, const struct target_tasks *tasks,
		     struct targets *out, char *why, size_t size);

/* Sets the addresses of kernel symbols by their whole names; leaves 0 where the kernel has none.
 * Reads the kernel's table once. 0 or negative errno. */
int target_addresses(struct target *symbols, size_t n);

/* Adds a target, with a copy of the name. 0 or -ENOMEM. */
int targets_add(struct targets *targets, const char *name, uint64_t address);

/* Sorts by name and keeps one target per address, the one with the shortest name. */
void targets_settle(struct targets *targets);
void targets_fini(struct targets *targets);

#endif

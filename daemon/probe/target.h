/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_TARGET_H
#define STACKD_DAEMON_PROBE_TARGET_H

/*
 * What a session of calls traces: in goes a pattern as a user writes it, out come the functions or
 * tracepoints of this host that it names. Plain values of the caller's, no state; any thread. A
 * search reads files and takes a while.
 */

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum target_kind {
	TARGET_FUNCTION,   /* of the kernel: vfs_*, p:vfs_* */
	TARGET_TRACEPOINT, /* t:sched:sched_process_exec */
	TARGET_USER, /* of a program or library: u:c:malloc, c:malloc, u:/usr/bin/bash:readline */
	TARGET_USDT, /* static probes of one: usdt:stdc++:throw, usdt:stdc++:libstdcxx:throw */
};

struct target_pattern {
	enum target_kind kind;
	char *place; /* the category, or the program or library; NULL of kernel functions */
	char *name;
	bool is_regex; /* POSIX extended, anywhere in a name; else a whole name in which * is
			  anything */
	regex_t regex;
};

struct target {
	char *name;
	uint64_t address; /* in the kernel; of programs the offset in the file */
	uint32_t counter; /* of TARGET_USDT: the offset of who is counted that wants it, or 0 */
};

/* Those whose programs and libraries are meant, by pid or tid: what goes by a name with them. */
struct target_tasks {
	const int64_t *ids;
	size_t n;
};

struct targets {
	enum target_kind kind;
	char *path; /* of the program or library they are in, else NULL */
	struct target *v;
	size_t n;
	size_t room;
	size_t forbidden; /* that match and are known not to be traceable; they are not in v */
};

/* 0, or -EINVAL with one line in why (size bytes): what is wrong, where, and what would be right;
 * -ENOMEM. */
int target_parse(const char *text, bool is_regex, struct target_pattern *out, char *why,
		 size_t size);
void target_pattern_fini(struct target_pattern *pattern);

/* Whether the name of a function or event fits. */
bool target_fits(const struct target_pattern *pattern, const char *name);

/* The same for text in which * is anything. */
bool target_glob(const char *glob, const char *text);

/*
 * All that fit, each address once, by name. 0 also when there are none; -errno with one line in
 * why. Of tracepoints see probe_tracepoints.h.
 */
int target_find_functions(const struct target_pattern *pattern, struct targets *out, char *why,
			  size_t size);

/*
 * The same in one file: of several that go by the name the one that has what fits; -EINVAL where
 * more than one has. Where a file has no function of that name its static probes are meant, as by
 * other tools: the kind of what was found tells. tasks may be NULL.
 */
int target_find_user(const struct target_pattern *pattern, const struct target_tasks *tasks,
		     struct targets *out, char *why, size_t size);

/* The addresses of kernel symbols by whole name, 0 where there is none: reads the table once. */
int target_addresses(struct target *symbols, size_t n);

/* Copies the name. 0 or -ENOMEM. */
int targets_add(struct targets *targets, const char *name, uint64_t address);

/* Sorts, and leaves one of those with the same address. */
void targets_settle(struct targets *targets);
void targets_fini(struct targets *targets);

#endif

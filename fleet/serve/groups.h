/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_SERVE_GROUPS_H
#define STACKD_FLEET_SERVE_GROUPS_H

/*
 * The sums of rows that share a key, merged from the answers of all shards. The keys, the order and
 * the names of groups are those of the daemon. Used by the thread that makes an answer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash_table.h"
#include "daemon/query/group_name.h"
#include "daemon/query/reason_times.h"
#include "daemon/session/filter.h"

struct arena;
struct shards;
struct text;

/* What a row of the answer stands for. */
enum groups_by {
	GROUPS_BY_STACK,
	GROUPS_BY_PROCESS,
	GROUPS_BY_HOST,
	GROUPS_BY_NAME, /* one of enum group_by */
	/*
	 * for a line of text: all waits for one reason of the threads whose names differ in digits
	 * only, of processes with the same name and, of several hosts, the same program
	 */
	GROUPS_BY_LINE,
};

enum groups_order { GROUPS_BY_TOTAL, GROUPS_BY_MAX, GROUPS_BY_COUNT };

struct groups_question {
	enum groups_by by;
	enum group_by name;
	enum groups_order order;
	struct filter filter;
	bool is_sampled; /* oncpu: rows have samples, not waits */
	/*
	 * the question names one host: rows are by process as on that host. Otherwise a row by
	 * stack stands for all processes with the same name and program, on all hosts
	 */
	bool is_one_host;
	bool folds_own;
	bool has_idle_last; /* idle rows come behind the others, unless those are small */
};

/* The functions of a row by line of which the time is known. */
enum { GROUP_FUNCTIONS = 8 };

/* One row of the answer: what its rows in the tables share, and their sums. */
struct group {
	const char *host, *boot;
	int64_t pid, pstart;
	const char *pcomm, *exe, *cgroup, *comm;
	const char *state, *reason;
	const char *name; /* what the row is called if rows are by GROUPS_BY_NAME or by host */
	uint64_t kstack, ustack; /* ids in the table of stacks; 0: there is none */
	int64_t kind;
	bool kernel, idle, own;
	bool has_preempted, exited, estimated;
	int64_t state_bits; /* the bits of all waits, combined by OR */
	int64_t count, total_ns, blocked_ns, runnable_ns, throttled_ns;
	int64_t sampled, sampled_ns, open, open_ns, unseen;
	int64_t max_ns, max_end, max_tid;
	const char *max_comm;
	int64_t buckets[WAIT_BUCKETS];
	int64_t of_rows, folded, processes;
	/* by line: the functions with the most time, at least, and that time; NULL: none */
	const char *functions[GROUP_FUNCTIONS];
	int64_t function_ns[GROUP_FUNCTIONS];
	struct reason_time *reasons; /* by process or by name: the time of the waits by reason */
	bool is_line;		     /* rows are by line */
	bool is_first;		     /* it is one of the first of a part of an overview */
	bool is_urgent;		     /* see groups_mark_urgent() */
	unsigned char place;	     /* groups of a lower place come first in any order */
	void *key;		     /* all that tells this group from others, of whole words */
	UT_hash_handle hh;
};

/* Kinds of rows in the tables, see fleet/sql. */
enum { KIND_ROW = 1, KIND_FOLDED = 2, KIND_REST = 3 };

struct groups {
	const struct groups_question *question;
	struct arena *arena;
	struct group *table;
	struct reason_time *spare_reasons; /* entries of `reasons` that can be used again */
	bool has_threads;		   /* some row was of threads that the filter selects */
	size_t n;
	size_t *n_all; /* of all groups of an answer that are not merged yet; NULL: these are all */
};

/* Adds to a sum. One that is too great stays at the greatest number: hosts may lie. */
static inline void sum_add(int64_t *sum, int64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = value > 0 ? INT64_MAX : INT64_MIN;
}

/* The fields of a row of groups_put_select(), in this order. */
enum group_field {
	GROUP_FIELD_HOST,
	GROUP_FIELD_BOOT,
	GROUP_FIELD_PID,
	GROUP_FIELD_PSTART,
	GROUP_FIELD_PCOMM,
	GROUP_FIELD_EXE,
	GROUP_FIELD_CGROUP,
	GROUP_FIELD_COMM,
	GROUP_FIELD_STATE,
	GROUP_FIELD_KEY_BITS,
	GROUP_FIELD_REASON,
	GROUP_FIELD_NAME,
	GROUP_FIELD_KERNEL,
	GROUP_FIELD_IDLE,
	GROUP_FIELD_KIND,
	GROUP_FIELD_KSTACK,
	GROUP_FIELD_USTACK,
	GROUP_FIELD_OWN,
	GROUP_FIELD_KEYS, /* the number of fields that may be part of a key; sums follow */
	GROUP_FIELD_STATE_BITS = GROUP_FIELD_KEYS,
	GROUP_FIELD_PREEMPTED,
	GROUP_FIELD_EXITED,
	GROUP_FIELD_ESTIMATED,
	GROUP_FIELD_COUNT,
	GROUP_FIELD_TOTAL,
	GROUP_FIELD_BLOCKED,
	GROUP_FIELD_RUNNABLE,
	GROUP_FIELD_THROTTLED,
	GROUP_FIELD_SAMPLED,
	GROUP_FIELD_SAMPLED_NS,
	GROUP_FIELD_OPEN,
	GROUP_FIELD_OPEN_NS,
	GROUP_FIELD_UNSEEN,
	GROUP_FIELD_MAX,
	GROUP_FIELD_MAX_END,
	GROUP_FIELD_MAX_TID,
	GROUP_FIELD_OF_ROWS,
	GROUP_FIELD_FOLDED,
	GROUP_FIELD_PROCESSES,
	GROUP_FIELD_MAX_COMM,
	GROUP_FIELD_BUCKETS,
	GROUP_FIELDS,
};

/* The most groups of an answer, from all shards together. */
enum { GROUPS_MAX = 200000 };

/*
 * Appends the SELECT whose rows groups_add() takes, up to the WHERE. `last` is a condition for rows
 * of the last window of a host.
 */
void groups_put_select(struct text *sql, const struct groups_question *question, const char *last);

/* Appends the GROUP BY of that SELECT. */
void groups_put_group_by(struct text *sql, const struct groups_question *question);

/* Appends the conditions of the filter that the server can check. */
void groups_put_filter(struct text *sql, const struct groups_question *question);

/*
 * Adds a row of an answer. Rows that the filter leaves out are ignored. Returns 0, -E2BIG if there
 * are too many groups, -EPROTO if the row is not one of groups_put_select(), or -ENOMEM.
 */
int groups_add(struct groups *groups, char **fields, size_t n);

/* Adds the sums of `from`, and empties it. Both have the same question and arena. */
int groups_merge(struct groups *groups, struct groups *from);

/*
 * Sets *out to an array of all groups in the order of the question, which the arena owns; the table
 * is emptied. Returns 0 or -ENOMEM.
 */
int groups_sort(struct groups *groups, struct group ***out);

void groups_fini(struct groups *groups);

/*
 * Compares two pointers to groups for qsort(): by place, then by time, and those with the same time
 * by their names.
 */
int groups_by_total(const void *x, const void *y);

/* Compares the places of two groups. */
static inline int groups_by_place(const struct group *a, const struct group *b)
{
	return (a->place > b->place) - (a->place < b->place);
}

/* True if a row stands for processes of several hosts. */
bool groups_are_of_all_hosts(const struct groups_question *question);

/*
 * Returns the function that most of the time of a row by line was in; NULL if none has a tenth of
 * it.
 */
const char *groups_line_function(const struct group *group);

/*
 * Sets is_urgent of groups by line of which the longest wait most likely holds up the program, as
 * the daemon does.
 */
void groups_mark_urgent(struct group **groups, size_t n);

/* Returns the state of the waits of a group as the daemon has it, such as "D", "mixed" or "-". */
const char *group_state(const struct group *group);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_REPORT_DATA_H
#define STACKD_CLIENT_REPORT_DATA_H

/*
 * Holds the data of a report: the answers about each window of a range, with every name, frame and
 * stack stored once. Rows are added while they arrive and borrow nothing. The program ends when
 * memory runs out. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/base/intern.h"
#include "client/render/path.h"
#include "client/render/render.h"
#include "proto/wire.h"

/*
 * Limits. A report has at most REPORT_COLUMNS_MAX columns of time and asks for REPORT_ROWS_MAX rows
 * in all: the largest of each column, and one for what is left. Of names longer than
 * REPORT_NAME_MAX bytes, it has the beginning.
 */
enum {
	REPORT_COLUMNS_MAX = 600,
	REPORT_ROWS_MAX = 1000000,
	REPORT_ROWS_LEAST = 200,
	REPORT_NAME_MAX = 1000,
	REPORT_WAITS_MAX = 200,
	REPORT_OPEN_MAX = 200,
	REPORT_BUCKETS_MAX = 64,
	REPORT_TEXTS_MAX = 500, /* gaps, losses and notes of each kind that are listed */
};

#define REPORT_NONE UINT32_MAX

enum report_probe { REPORT_OFFCPU, REPORT_ONCPU, REPORT_IOLAT, REPORT_PROBES };

/* What is known of the host in one column of time. */
struct report_column {
	int64_t start, end; /* ns since 1970 */
	/* the sums of the lengths of the windows of each probe; 0: there are none */
	int64_t covered[REPORT_PROBES];
	int64_t lost;
	/* totals over all threads, from offcpu; on_cpu is exact, not from samples */
	int64_t on_cpu, runnable, blocked, waits, open;
	int64_t samples;
	int64_t stall_length; /* for how long stalls were measured; 0: not at all */
	int64_t stalls[3][2]; /* of CPU, I/O and memory: for some tasks, for all */
	/* time in rows that the daemon has and did not send: see report_data_end_answer() */
	int64_t unsent[REPORT_PROBES][2];
};

/* The part of a row that rows of other columns share. Consists of numbers alone, so that it has no
 * padding. */
struct report_key {
	uint32_t probe;
	uint32_t node;		/* the innermost frame, a node of the tree of stacks */
	uint32_t function;	/* number of a string: what the row is where rows are by function */
	uint32_t process;	/* REPORT_NONE: several */
	uint32_t state, reason; /* numbers of strings */
	uint32_t is_idle;
	uint32_t is_estimated;
};

struct report_row {
	uint32_t column, key;
	int64_t blocked; /* of oncpu: the time on a CPU */
	int64_t runnable;
	int64_t count;
	int64_t max;
};

/* The reason of rows of stackd's own threads, which come last. model.js has it, too. */
#define REPORT_OWN "stackd itself"

/* A frame below its caller. The frames of a stack are the way from a node to the root. */
struct report_node {
	uint32_t parent; /* REPORT_NONE: the outermost one */
	uint32_t frame;
};

enum report_frame_kind { REPORT_PROCESS, REPORT_USER, REPORT_KERNEL, REPORT_PSEUDO };

struct report_frame {
	uint32_t kind, name, module; /* the last two are numbers of strings */
};

struct report_process {
	int64_t pid, start;
	uint32_t comm, cgroup, exe, is_kernel;
};

/* How many waits or operations of one kind took how long. */
struct report_latency {
	uint32_t column;
	uint32_t layer; /* number of a string; REPORT_NONE: waits, whose name is their reason */
	uint32_t name;
	int64_t count, total, bytes, max;
	int64_t buckets[REPORT_BUCKETS_MAX]; /* bucket i: from 2^i up to 2^(i+1) ns */
};

/* One of the longest waits. */
struct report_wait {
	uint32_t key;
	uint32_t comm;	     /* of the thread; number of a string */
	uint32_t held_up_by; /* who held up the row, for how long; number of a string, "": not known
			      */
	int64_t tid, length, end;
	bool is_open;  /* it had not ended when its window did */
	bool is_older; /* it had begun before the range that was asked for */
};

/* A wait that had not ended at the end of the range. */
struct report_open {
	/* REPORT_NONE: not known */
	uint32_t node, function, comm, state, reason, object, holders_unknown;
	int64_t pid, tid, length;
	int64_t holders_more;
	int64_t holders_at; /* when the holders were looked up; 0: at the end of the range */
	bool is_deadlock, is_in_doubt;
	uint32_t *holders, *chain; /* numbers of strings */
	size_t n_holders, n_chain;
};

/* A stretch of time without data. */
struct report_gap {
	int64_t start, end;
	uint32_t reason, probe;
};

/* A text about one probe. */
struct report_text {
	uint32_t text, probe;
};

struct report_data {
	struct view view;
	int64_t asked_start; /* ns since 1970 */
	/* a filter selects waits by length: one whose end is absent may be over, and longer */
	bool is_of_lengths;
	struct path path;
	/* the stacks of rows that were seen, and the node and the function of each */
	struct intern *known;
	struct report_place {
		uint32_t node, function;
	} * places;
	size_t places_capacity;
	struct intern *strings, *frames, *nodes, *processes, *keys, *latency_keys;
	struct intern *gaps, *notes, *loss_keys;
	struct report_column *columns; /* the oldest first */
	size_t n_columns, columns_capacity;
	struct report_row *rows;
	size_t n_rows, rows_capacity;
	struct report_latency *latencies;
	size_t n_latencies, latencies_capacity;
	int64_t *losses; /* the counts of loss_keys */
	size_t losses_capacity;
	struct report_wait *waits; /* in order after report_data_finish() */
	size_t n_waits, waits_capacity;
	struct report_open *open;
	size_t n_open, open_capacity;
	int64_t open_more;		 /* number of open waits that were not sent */
	int64_t open_at;		 /* when they were open, ns since 1970; 0: not known */
	int64_t n_unsent[REPORT_PROBES]; /* rows that the daemon did not send */
	int64_t n_cut_names;		 /* names that were too long */
	int64_t min_wait_ns;		 /* the greatest one; 0: none */
	/* Below which length waits or operations are sampled, the greatest one; 0: none are. */
	int64_t sample_below_ns[REPORT_PROBES];
	uint32_t sampled[REPORT_PROBES]; /* the note of that answer; number of a string, "": none */
	int64_t period_ns;
	int64_t cost_ns, cost_length_ns;
	int64_t cpus;
	char *missing[REPORT_PROBES]; /* why there are no answers, escaped; NULL: there are */
	/* the column that is being filled, as the start and end of the answer that is coming */
	size_t column;
	int64_t sent[2]; /* the sums of its rows that came */
};

void report_data_init(struct report_data *data, const struct view *view, int64_t asked_start);
void report_data_fini(struct report_data *data);

/*
 * Makes the column of a slice, and adds what its first reply says. The rows come by
 * report_data_add_rows().
 */
void report_data_begin_answer(struct report_data *data, enum report_probe probe,
			      const struct wire_snapshot_reply *reply);

void report_data_add_rows(struct report_data *data, enum report_probe probe,
			  const struct wire_rows *rows);

/*
 * Ends an answer: adds one row with the time of the rows that the daemon did not send, so that the
 * sums of the column are those of the daemon.
 */
void report_data_end_answer(struct report_data *data, enum report_probe probe,
			    const struct wire_snapshot_reply *reply);

/* Adds an answer with the open waits. */
void report_data_add_open(struct report_data *data, const struct wire_snapshot_reply *reply,
			  const struct wire_rows *rows);

/* Puts columns in order, when all answers have come. */
void report_data_finish(struct report_data *data);

/* Returns the number of a string, which is escaped and shortened here; of "" for NULL. */
uint32_t report_string(struct report_data *data, const char *text);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_WIRE_H
#define STACKD_PROTO_WIRE_H

/*
 * The parameters of io.stackd as C structs, the same for daemon and client.
 * Encoding borrows what the structs point to; decoding allocates all of it from
 * the caller's arena. No thread owns them: plain values.
 * Member names are the field names of io.stackd.varlink.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/int_list.h"

/* An optional int that is not there. Optional strings and structs are NULL. */
#define WIRE_ABSENT INT64_MIN

/* An optional bool: absent, or 0/1. */
enum { WIRE_BOOL_ABSENT = -1 };

struct wire_strs {
	const char *const *v;
	size_t n;
};

/* Times on the wire are {ns, text}; here ns since the epoch. */
struct wire_range {
	int64_t start;
	int64_t end;
};

struct wire_gap {
	int64_t start;
	int64_t end;
	const char *reason;
	const char *session; /* optional */
};

struct wire_gaps {
	const struct wire_gap *v;
	size_t n;
};

struct wire_lost {
	const char *reason;
	int64_t count;
};

struct wire_losts {
	const struct wire_lost *v;
	size_t n;
};

struct wire_coverage {
	struct wire_range asked;
	struct wire_range used;
	int64_t asked_ns;
	int64_t covered_ns;
	int64_t windows;
	struct wire_gaps gaps;
	bool complete;
};

struct wire_source {
	const char *file; /* optional */
	int64_t line;	  /* optional */
	bool inlined;
};

struct wire_frame {
	const char *kind;
	const char *name;		  /* optional */
	int64_t offset;			  /* optional */
	const char *module;		  /* optional */
	const char *address;		  /* optional */
	const struct wire_source *source; /* optional */
};

struct wire_frames {
	const struct wire_frame *v;
	size_t n;
};

struct wire_stack {
	const char *id;
	struct wire_frames frames;
	struct wire_strs flags;
};

struct wire_process {
	int64_t pid;
	int64_t start; /* time */
	const char *comm;
	const char *exe;    /* optional */
	const char *cgroup; /* optional */
	bool kernel;
	bool exited;
};

struct wire_totals {
	int64_t processes;
	int64_t threads;
	int64_t on_cpu_ns;
	int64_t samples;      /* optional, of a probe that samples; of others the waits: */
	int64_t runnable_ns;  /* optional */
	int64_t throttled_ns; /* optional */
	int64_t blocked_ns;   /* optional */
	int64_t waits;	      /* optional */
	int64_t short_waits;  /* optional */
	int64_t short_ns;     /* optional */
	int64_t open_waits;   /* optional */
	int64_t cpus;	      /* optional */
	int64_t unseen;	      /* optional */
	int64_t unseen_ns;    /* optional */
	int64_t calls;	      /* optional, of a probe of calls, which has none of the others */
	int64_t ios;	      /* optional */
};

struct wire_link {
	const char *context;
	int64_t pid;	  /* optional */
	int64_t tid;	  /* optional */
	const char *comm; /* optional */
};

struct wire_links {
	const struct wire_link *v;
	size_t n;
};

struct wire_waker {
	struct wire_links path;
	const struct wire_stack *kernel; /* optional */
	const struct wire_stack *user;	 /* optional */
};

/* Of iolat: what a row of it has besides. */
struct wire_io {
	const char *layer;
	const char *op;
	const char *filesystem; /* optional */
	const char *device;	/* optional */
	int64_t own_ns;
	int64_t cpu_ns;
	int64_t runnable_ns;
	int64_t device_ns;
	int64_t queue_ns;
	int64_t throttled_ns;
	int64_t other_ns;
	int64_t async;
	int64_t errors;
	int64_t bytes;
	int64_t merges;
	int64_t requeues;
	int64_t p50_ns; /* optional, as the next five */
	int64_t p90_ns;
	int64_t p99_ns;
	int64_t open;
	int64_t oldest_ns;
	int64_t oldest_tid;
};

struct wire_row {
	struct wire_process process;
	const char *key; /* optional */
	int64_t tid;	 /* optional */
	const char *comm;
	bool idle;
	int64_t count;
	int64_t total_ns;
	/* Of waits only, up to buckets: */
	const char *state;    /* optional */
	int64_t state_bits;   /* optional */
	int64_t blocked_ns;   /* optional */
	int64_t runnable_ns;  /* optional */
	int64_t throttled_ns; /* optional */
	int64_t open;	      /* optional */
	int64_t open_ns;      /* optional */
	int64_t unseen;	      /* optional */
	int64_t max_ns;	      /* optional */
	int64_t max_end;      /* optional time */
	int64_t max_tid;      /* optional */
	const char *max_comm; /* optional */
	struct int_list buckets;
	const struct wire_stack *kernel; /* optional */
	const struct wire_stack *user;	 /* optional */
	const struct wire_waker *waker;	 /* optional, of offwake */
	const struct wire_io *io;	 /* optional, of iolat */
	int64_t window;			 /* optional time, of iolat by window */
};

struct wire_rows {
	const struct wire_row *v;
	size_t n;
};

struct wire_rest {
	int64_t rows;
	int64_t threads;
	int64_t total_ns;
};

/* An empty list is an absent one. */
struct wire_filter {
	struct int_list pids;
	struct int_list tids;
	int user_threads;
	int kernel_threads;
	int user_stacks;
	int kernel_stacks;
	int64_t min_block_ns; /* optional */
	int64_t max_block_ns; /* optional */
	struct int_list cpus;
	struct wire_strs states;
	const char *comm;   /* optional */
	const char *cgroup; /* optional */
	const char *unit;   /* optional */
	const char *layer;  /* optional, of iolat, as the next two */
	const char *op;	    /* optional */
	const char *disk;   /* optional */
};

struct wire_program {
	const char *name;
	const char *hook;
	int64_t runs;
	int64_t run_ns;
	int64_t missed;
	int64_t verified_insns;
};

struct wire_programs {
	const struct wire_program *v;
	size_t n;
};

struct wire_probe {
	const char *name;
	const char *state;
	const char *hook;   /* optional */
	const char *reason; /* optional */
	struct wire_strs blind;
	int64_t min_wait_ns; /* optional */
	int64_t period_ns;   /* optional */
	struct wire_programs programs;
};

struct wire_probes {
	const struct wire_probe *v;
	size_t n;
};

struct wire_limit {
	const char *name;
	int64_t value;
	int64_t used;
	int64_t hits;
};

struct wire_walk {
	const char *binary; /* optional */
	int64_t stacks;
	int64_t whole;
	int64_t truncated;
	int64_t no_table;
	int64_t no_mapping;
	int64_t no_row;
	int64_t fault;
	int64_t frame_pointers;
};

struct wire_walks {
	const struct wire_walk *v;
	size_t n;
};

struct wire_unwind {
	int64_t files;
	int64_t bytes;
	int64_t max_bytes;
	int64_t loads;
	int64_t load_ns;
	int64_t evictions;
	struct wire_walks binaries;
};

struct wire_limits {
	const struct wire_limit *v;
	size_t n;
};

struct wire_window {
	int64_t seq;
	int64_t start; /* time */
	int64_t end;   /* time */
	int64_t length_ns;
	int64_t rows;
	int64_t threads;
	int64_t open;
	int64_t bytes;
	struct wire_losts lost;
	const char *probe;   /* optional */
	const char *session; /* optional */
};

struct wire_windows {
	const struct wire_window *v;
	size_t n;
};

struct wire_session {
	const char *id;
	const char *probe;
	const char *name; /* optional */
	const char *owner;
	int64_t since; /* time */
	int64_t until; /* optional time: its planned end */
	int64_t ended; /* optional time */
	bool always;
	const struct wire_filter *filter; /* optional */
	int64_t min_wait_ns;		  /* optional */
	int64_t period_ns;		  /* optional */
	int64_t count;			  /* optional */
	/* Of calls only, up to lost: */
	const char *function; /* optional */
	int regexp;
	int64_t functions;   /* optional */
	const char *file;    /* optional, of programs' functions */
	int64_t calls_per_s; /* optional */
	int64_t load;	     /* optional */
	int64_t every;	     /* optional */
	int64_t rate;	     /* optional, of stacksnoop as held */
	int64_t held;	     /* optional */
	const char *note;    /* optional */
	struct wire_losts lost;
};

struct wire_sessions {
	const struct wire_session *v;
	size_t n;
};

struct wire_store {
	const char *path;
	const char *state;
	int64_t bytes;
	int64_t max_bytes;
	int64_t windows;
	int64_t oldest; /* optional time */
	int64_t newest; /* optional time */
	int64_t synced; /* optional time */
	int64_t queued;
	int64_t written;
	int64_t dropped;
	int64_t evicted;
	int64_t merged;
	int64_t damaged;
	const char *notice; /* optional */
};

/* Replies and requests, one pair a method; Status, Probes and Sessions ask nothing. */

struct wire_status_reply {
	const char *version;
	int64_t pid;
	int64_t started; /* time */
	const char *boot_id;
	const char *kernel;
	bool healthy;
	struct wire_strs problems;
	struct wire_probes probes;
	int64_t windows;
	int64_t oldest; /* optional time */
	int64_t newest; /* optional time */
	int64_t window_ns;
	int64_t keep_ns;
	int64_t user_ns;
	int64_t system_ns;
	int64_t rss_bytes;
	int64_t map_bytes;
	int64_t cut_ns;
	int64_t cut_max_ns;
	struct wire_losts lost;
	struct wire_limits limits;
	bool stats_enabled;
	const struct wire_store *store;	  /* optional */
	const struct wire_unwind *unwind; /* optional */
};

struct wire_probes_reply {
	struct wire_probes probes;
};

struct wire_sessions_reply {
	struct wire_sessions sessions;
};

struct wire_windows_request {
	int64_t since_ns;    /* optional */
	int64_t until_ns;    /* optional */
	const char *probe;   /* optional */
	const char *session; /* optional */
};

struct wire_windows_reply {
	struct wire_windows windows;
	struct wire_gaps gaps;
};

struct wire_start_request {
	const char *probe;
	const char *name;		  /* optional */
	const struct wire_filter *filter; /* optional */
	int64_t duration_ns;		  /* optional */
	int64_t frequency;		  /* optional */
	int64_t period_ns;		  /* optional */
	const char *event;		  /* optional */
	int idle;
	const char *function; /* optional */
	int regexp;
	int64_t rate; /* optional */
};

/* One call, of a session of stacksnoop. */
struct wire_call {
	int64_t time; /* time */
	const char *comm;
	int64_t pid;
	int64_t tid;
	int64_t cpu;
	int64_t count;
	const struct wire_stack *kernel; /* optional */
	const struct wire_stack *user;	 /* optional */
};

struct wire_calls {
	const struct wire_call *v;
	size_t n;
};

struct wire_start_reply {
	struct wire_session session;
	struct wire_calls calls; /* optional */
	int64_t missed;		 /* optional */
};

struct wire_functions_request {
	const char *function;
	int regexp;
	int64_t max; /* optional */
};

struct wire_functions_reply {
	const char *kind;
	const char *file; /* optional */
	int64_t count;
	int64_t forbidden;
	struct wire_strs functions;
};

struct wire_stop_request {
	const char *session;
};

struct wire_stop_reply {
	struct wire_session session;
};

struct wire_snapshot_request {
	const char *probe;		  /* optional: one of these two */
	const char *session;		  /* optional */
	int64_t window_ns;		  /* optional */
	int64_t since_ns;		  /* optional */
	int64_t until_ns;		  /* optional */
	const struct wire_filter *filter; /* optional */
	int open;
	const char *by;	  /* optional */
	const char *sort; /* optional */
	int reverse;
	int64_t top; /* optional */
	int idle;
	int lines;
	int addresses;
};

struct wire_follow_request {
	const char *probe;		  /* optional: one of these two */
	const char *session;		  /* optional */
	int64_t interval_ns;		  /* optional */
	const char *cursor;		  /* optional */
	const struct wire_filter *filter; /* optional */
	const char *by;			  /* optional */
	const char *sort;		  /* optional */
	int64_t top;			  /* optional */
	int idle;
};

/* Of Follow too, which gives a cursor. */
struct wire_snapshot_reply {
	const char *probe;
	const char *session; /* optional */
	const char *hook;
	int64_t min_wait_ns; /* optional */
	int64_t period_ns;   /* optional */
	const char *cursor;  /* optional */
	struct wire_coverage coverage;
	struct wire_totals totals;
	struct wire_losts lost;
	struct wire_strs notes;
	struct wire_rest shown;
	struct wire_rest rest;
	struct wire_rest idle;
	struct wire_rows rows;
};

#endif

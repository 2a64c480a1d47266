/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_COMPAT_COMPAT_H
#define STACKD_CLIENT_COMPAT_COMPAT_H

/*
 * Verbs that stand in for older tools such as bcc's offcputime: they take the options of the tool,
 * record with a session of the daemon, and print in the tool's layout. Each tool has a file with a
 * struct compat_tool. Words of the command line are borrowed. A failure has been reported when a
 * function returns. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "client/base/exit_code.h"
#include "client/compat/entries.h"
#include "client/option/options.h"
#include "client/render/render.h"

struct compat_run;

/* The effects that options of tools have. */
enum compat_action {
	COMPAT_NATIVE,	    /* does what stackctl's own option in `native` does */
	COMPAT_INTERVAL,    /* prints the answer at this interval */
	COMPAT_TIMESTAMPS,  /* prints the time above each answer */
	COMPAT_STORAGE,	    /* none: it sizes a table that stackctl does not have */
	COMPAT_PROGRAMS,    /* prints the BPF programs instead of recording */
	COMPAT_MISSING,	    /* it is refused; `native` says what to use instead */
	COMPAT_DURATION,    /* ends the recording after this time */
	COMPAT_PER_PROCESS, /* entries of different processes stay apart */
	COMPAT_CHOICE,	    /* its value is stored in compat_run.chosen, which the tool reads */
	COMPAT_HELP,
};

struct compat_option {
	char letter; /* 0: it has only a long name */
	const char *name;
	const char *value;  /* how help names its value; NULL: it takes none */
	const char *native; /* "--pid", or for COMPAT_MISSING a message; may be NULL */
	const char *help;   /* NULL: help does not list it */
	unsigned group;	    /* only one option of a group may be given; 0: in no group */
	enum compat_action action;
};

struct compat_tool {
	const char *name;
	const char *probe;
	const char *unit; /* the figures that it prints, for help */
	const struct compat_option *options;
	size_t n_options;
	const char *examples;
	bool by_process;     /* threads of a process are one entry, whatever their names */
	bool with_waker;     /* prints the stacks of the waker above those of the waiting thread */
	const char *pattern; /* help's name for the functions it takes; NULL: it takes seconds */
	bool has_calls;	     /* counts calls, and prints "Detaching..." at its end */
	int64_t (*value)(const struct wire_row *row); /* of a row; 0: the row is left out */
	int (*compare)(const void *a, const void *b); /* entries, in the order of printing */
	void (*print_value)(FILE *out, const struct compat_entry *entry);
	void (*print_header)(FILE *out, const struct compat_run *run);
	int (*prepare)(struct compat_run *run); /* called after parsing; may be NULL */
	/* Prints an answer that is no list of stacks; returns how many entries. Else NULL. */
	size_t (*render)(FILE *out, const struct compat_run *run,
			 const struct wire_snapshot_reply *reply);
	/* Prints calls as they happen; since: the start of the session, in ns. Else NULL. */
	void (*print_calls)(FILE *out, const struct compat_run *run, int64_t since,
			    const struct wire_calls *calls);
};

/* One run of a tool. */
struct compat_run {
	const struct compat_tool *tool;
	struct options options;
	const char *chosen[8]; /* by group: the value of its option, "" if that takes none */
	char letters[8];       /* by group: the letter of its option */
	const char *duration;  /* in seconds; NULL: until Ctrl-C */
	int64_t interval_ns;   /* 0: prints once, at the end */
	bool has_timestamps;   /* prints the time above each answer */
	bool shows_programs;   /* prints the BPF programs instead of recording */
	bool has_storage;      /* --stack-storage-size was given */
	bool is_folded;	       /* prints folded lines, not the tool's layout */
	bool per_process;      /* entries of different processes stay apart */
	int64_t functions;     /* how many are traced; known once the session has begun */
	bool help;
};

extern const struct compat_tool compat_offcputime;
extern const struct compat_tool compat_offwaketime;
extern const struct compat_tool compat_profile;
extern const struct compat_tool compat_stackcount;
extern const struct compat_tool compat_stacksnoop;
extern const struct compat_tool compat_iostack;
extern const struct compat_tool compat_topwaits;

/* Runs a tool; argv[0] is the verb. */
enum exit_code compat_main(const struct compat_tool *tool, const char *socket, int argc,
			   char **argv);

/* Parses argv into run. Returns 0, or -EINVAL with run->options.message. */
int compat_parse(struct compat_run *run, int argc, char **argv);

void compat_print_help(FILE *out, const struct compat_tool *tool);

/* Returns which stacks are shown: "user + kernel", "user" or "kernel". */
const char *compat_stacks(const struct compat_run *run);

/*
 * Prints which threads are recorded: "PID 185", "TID 3,4", "user threads", "kernel threads" or "all
 * threads".
 */
void compat_print_threads(FILE *out, const struct compat_run *run, unsigned group);

/* Prints the value of an entry, which is in ns, in microseconds. */
void compat_print_us(FILE *out, const struct compat_entry *entry);

/* Prints the end of the header: " for 5 secs." or "... Hit Ctrl-C to end.". */
void compat_print_length(FILE *out, const struct compat_run *run);

/* Prints an answer in the tool's layout, smallest entry first; returns the number of entries. */
size_t compat_render(FILE *out, const struct compat_run *run,
		     const struct wire_snapshot_reply *reply);

#endif

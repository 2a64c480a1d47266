/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_COMPAT_COMPAT_H
#define STACKD_CLIENT_COMPAT_COMPAT_H

/*
 * Verbs that replace older tools such as bcc's offcputime: they take the options of the tool,
 * record with a session of the daemon, and print in the layout of the tool. Each tool has a file
 * that defines a struct compat_tool. Words of the command line are borrowed. A function that fails
 * prints a message on standard error before it returns. Main thread.
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

/* The effects that an option of an older tool may have. */
enum compat_action {
	COMPAT_NATIVE,	    /* does the same as stackctl's option whose name is in `native` */
	COMPAT_INTERVAL,    /* sets the interval at which answers are printed */
	COMPAT_TIMESTAMPS,  /* prints the time of day above each answer */
	COMPAT_STORAGE,	    /* has no effect; in the older tool it sets the size of a table */
	COMPAT_PROGRAMS,    /* prints the BPF programs instead of recording */
	COMPAT_MISSING,	    /* the option is refused; `native` says what to use instead */
	COMPAT_DURATION,    /* sets the time after which the recording ends */
	COMPAT_PER_PROCESS, /* lists calls by different processes separately */
	COMPAT_CHOICE,	    /* stores its value in compat_run.chosen, where the tool reads it */
	COMPAT_HELP,
};

struct compat_option {
	char letter; /* 0: the option has only a long name */
	const char *name;
	const char *value;  /* the value's name in help; NULL: the option takes no value */
	const char *native; /* an option of stackctl or a message, as `action` says; may be NULL */
	const char *help;   /* the option's text in help; NULL: help does not list the option */
	unsigned group;	    /* only one option of each group may be given; 0: in no group */
	enum compat_action action;
};

struct compat_tool {
	const char *name;
	const char *probe;
	const char *unit; /* text for help: what the printed numbers mean */
	const struct compat_option *options;
	size_t n_options;
	const char *examples;
	bool by_process; /* sums over all threads of a process, even if their names differ */
	bool with_waker; /* prints the stacks of the waker above those of the waiting thread */
	/*
	 * If the tool's argument is a function to trace: the name of that argument in help. NULL:
	 * the argument is a time in seconds.
	 */
	const char *pattern;
	bool has_calls; /* counts calls of functions, and ends with the line "Detaching..." */
	/* Returns by how much a row increases the value of its entry. 0: the row is left out. */
	int64_t (*value)(const struct wire_row *row);
	/* Compares two entries for qsort(), in the order in which they are printed. */
	int (*compare)(const void *a, const void *b);
	void (*print_value)(FILE *out, const struct compat_entry *entry);
	void (*print_header)(FILE *out, const struct compat_run *run);
	/* Called when the options have been parsed; may be NULL. */
	int (*prepare)(struct compat_run *run);
	/*
	 * Prints an answer of a tool that does not print stacks. Returns the number of its entries.
	 * NULL for tools that print stacks.
	 */
	size_t (*render)(FILE *out, const struct compat_run *run,
			 const struct wire_snapshot_reply *reply);
	/*
	 * Prints calls as they happen. `since` is the start of the session, in ns since 1970. NULL
	 * for tools that print sums of calls, or that do not trace calls.
	 */
	void (*print_calls)(FILE *out, const struct compat_run *run, int64_t since,
			    const struct wire_calls *calls);
};

/* One run of a verb that replaces an older tool. */
struct compat_run {
	const struct compat_tool *tool;
	struct options options;
	/*
	 * One entry for each group of options: the value of the option that was given, or "" if
	 * that option takes no value. NULL if no option of the group was given.
	 */
	const char *chosen[8];
	char letters[8];      /* for each group: the letter of the option that was given, or 0 */
	const char *duration; /* how long to record, in seconds; NULL: until Ctrl-C */
	int64_t interval_ns;  /* time from one answer to the next; 0: one answer, at the end */
	bool has_timestamps;  /* prints the time of day above each answer */
	bool shows_programs;  /* prints the BPF programs instead of recording */
	bool has_storage;     /* --stack-storage-size was given */
	bool is_folded;	      /* prints folded lines, not the tool's layout */
	bool per_process;     /* lists calls by different processes separately */
	int64_t functions;    /* number of traced functions; set when the session has begun */
	bool help;
};

extern const struct compat_tool compat_offcputime;
extern const struct compat_tool compat_offwaketime;
extern const struct compat_tool compat_profile;
extern const struct compat_tool compat_stackcount;
extern const struct compat_tool compat_stacksnoop;
extern const struct compat_tool compat_iostack;
extern const struct compat_tool compat_topwaits;

/* Runs the verb that replaces a tool; argv[0] is the verb. */
enum exit_code compat_main(const struct compat_tool *tool, const char *socket, int argc,
			   char **argv);

/* Parses argv into run. Returns 0, or -EINVAL with a message in run->options.message. */
int compat_parse(struct compat_run *run, int argc, char **argv);

void compat_print_help(FILE *out, const struct compat_tool *tool);

/* Returns which stacks are shown: "user + kernel", "user" or "kernel". */
const char *compat_stacks(const struct compat_run *run);

/*
 * Prints which threads are recorded: "PID 185", "TID 3,4", "user threads", "kernel threads" or "all
 * threads". `group` is the number of the tool's group of options that select threads.
 */
void compat_print_threads(FILE *out, const struct compat_run *run, unsigned group);

/* Prints the value of an entry in microseconds; the value itself is in ns. */
void compat_print_us(FILE *out, const struct compat_entry *entry);

/*
 * Prints the end of the header line, which says how long the tool records: " for 5 secs." or "...
 * Hit Ctrl-C to end.".
 */
void compat_print_length(FILE *out, const struct compat_run *run);

/* Prints an answer in the tool's layout, smallest entry first; returns the number of entries. */
size_t compat_render(FILE *out, const struct compat_run *run,
		     const struct wire_snapshot_reply *reply);

#endif

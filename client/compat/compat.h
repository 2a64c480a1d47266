/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_COMPAT_COMPAT_H
#define STACKD_CLIENT_COMPAT_COMPAT_H

/*
 * Verbs that are older tools by name: their letters in, a session of the daemon's meanwhile,
 * their layout out. One file a tool says what is its own; the words of the command line are
 * borrowed. Failures have been reported when a function returns. Main thread.
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

/* What becomes of an option besides the word of stackctl's own that it stands for. */
enum compat_act {
	COMPAT_NATIVE,
	COMPAT_INTERVAL,
	COMPAT_TIMESTAMPS,
	COMPAT_STORAGE, /* a size that nothing here depends on */
	COMPAT_PROGRAMS,
	COMPAT_MISSING, /* native names what does the same */
	COMPAT_DURATION,
	COMPAT_PER_PROCESS,
	COMPAT_CHOICE, /* the tool looks at its group */
	COMPAT_HELP,
};

struct compat_option {
	char letter; /* 0: long only */
	const char *name;
	const char *value;  /* NULL: takes none */
	const char *native; /* "--pid" */
	const char *help;   /* NULL: not shown */
	unsigned group;	    /* of each but 0 one may be given */
	enum compat_act act;
};

struct compat_tool {
	const char *name;
	const char *probe;
	const char *unit; /* of the figures it prints, for help */
	const struct compat_option *options;
	size_t n_options;
	const char *examples;
	bool by_process;     /* a process's threads are one entry, whatever their names */
	bool with_waker;     /* two pairs of stacks, the waker's above */
	const char *pattern; /* what it takes besides options; NULL: seconds */
	bool has_calls;	     /* entries are counts of calls; it ends with a word */
	int64_t (*value)(const struct wire_row *row);
	int (*compare)(const void *a, const void *b);
	void (*print_value)(FILE *out, const struct compat_entry *entry);
	void (*print_header)(FILE *out, const struct compat_run *run);
	int (*prepare)(struct compat_run *run); /* after parsing; may be NULL */
	/* Of one whose answer is no list of stacks, else NULL; how many it printed. */
	size_t (*render)(FILE *out, const struct compat_run *run,
			 const struct wire_snapshot_reply *reply);
	/* Of one that tells calls as they come; since is the session's start. Else NULL. */
	void (*print_calls)(FILE *out, const struct compat_run *run, int64_t since,
			    const struct wire_calls *calls);
};

/* One use of one tool. */
struct compat_run {
	const struct compat_tool *tool;
	struct options options;
	const char *chosen[8]; /* by group: the value, or "" of an option without */
	char letters[8];       /* by group: which option it was */
	const char *duration;  /* NULL: until Ctrl-C */
	int64_t interval_ns;   /* 0: once, at the end */
	bool has_timestamps;
	bool shows_programs;
	bool has_storage;
	bool is_folded;
	bool per_process;
	int64_t functions; /* that are traced, once it has begun */
	bool help;
};

extern const struct compat_tool compat_offcputime;
extern const struct compat_tool compat_offwaketime;
extern const struct compat_tool compat_profile;
extern const struct compat_tool compat_stackcount;
extern const struct compat_tool compat_stacksnoop;
extern const struct compat_tool compat_iostack;
extern const struct compat_tool compat_topwaits;

/* argv[0] is the verb. */
enum exit_code compat_main(const struct compat_tool *tool, const char *socket, int argc,
			   char **argv);

/* argv to run->options; 0, or -EINVAL with run->options.message. */
int compat_parse(struct compat_run *run, int argc, char **argv);

void compat_print_help(FILE *out, const struct compat_tool *tool);

/* "user + kernel", "user" or "kernel". */
const char *compat_stacks(const struct compat_run *run);

/* "PID 185", "TID 3,4", "user threads", "kernel threads" or "all threads", by what was given. */
void compat_print_threads(FILE *out, const struct compat_run *run, unsigned group);

/* An entry's value, which is in ns, in us. */
void compat_print_us(FILE *out, const struct compat_entry *entry);

/* " for 5 secs.", or "... Hit Ctrl-C to end."; ends the header. */
void compat_print_length(FILE *out, const struct compat_run *run);

/* All entries of an answer, smallest first, in the tool's layout; how many. */
size_t compat_render(FILE *out, const struct compat_run *run,
		     const struct wire_snapshot_reply *reply);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_OPTION_OPTIONS_H
#define STACKD_CLIENT_OPTION_OPTIONS_H

/*
 * Parses the words after the verb into checked values. One table of options is the source of the
 * parser and of --help, which the bash completion reads and the man page is compared with. The
 * parsed options point into argv and into themselves; the caller owns both. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Groups of options; a verb takes a set of groups. */
enum option_set {
	OPTIONS_COMMON = 1 << 0, /* every verb takes these */
	OPTIONS_FORMAT = 1 << 1,
	OPTIONS_RANGE = 1 << 2,
	OPTIONS_FILTER = 1 << 3,
	OPTIONS_STACKS = 1 << 4,
	OPTIONS_ORDER = 1 << 5,
	OPTIONS_CHECK = 1 << 6,
	OPTIONS_SESSION = 1 << 7, /* what to record */
	OPTIONS_START = 1 << 8,
	OPTIONS_RECORD = 1 << 9,
	OPTIONS_WATCH = 1 << 10,
	OPTIONS_CALLS = 1 << 11, /* which functions to trace */
	OPTIONS_LIST = 1 << 12,
	OPTIONS_SNOOP = 1 << 13,  /* how to show calls */
	OPTIONS_LAYERS = 1 << 14, /* filters of iolat */
	OPTIONS_VIEWS = 1 << 15,  /* how to show the rows of one probe */
	OPTIONS_ONCE = 1 << 16,	  /* for a single answer, not for a stream of them */
};

/* Limits of the members of a list and of the lengths of texts. */
enum {
	OPTION_IDS_MAX = 256,
	OPTION_STATES_MAX = 32,
	OPTION_STATE_LEN = 16,
	OPTION_MESSAGE_MAX = 512,
};

struct format;

struct id_list {
	int64_t v[OPTION_IDS_MAX];
	size_t n;
};

struct state_list {
	char v[OPTION_STATES_MAX][OPTION_STATE_LEN];
	size_t n;
};

/* Options that are not on the command line are NULL, false or WIRE_ABSENT. */
struct options {
	const char *
		argument; /* the first word that is no option: a probe, session, verb or function */
	const char *function; /* the second word that is no option */
	const char *socket;
	bool help;
	bool version;
	bool check;
	struct id_list pids;
	struct id_list tids;
	bool user_threads;
	bool kernel_threads;
	bool user_stacks;
	bool kernel_stacks;
	struct id_list cpus;
	int64_t frequency;
	int64_t period_ns;
	const char *event;
	int64_t rate; /* calls per second */
	bool regexp;
	const char *functions; /* list the functions that match this */
	int64_t duration_ns;   /* of --for or --duration */
	int64_t interval_ns;
	const char *name;
	int64_t min_block_ns;
	int64_t max_block_ns;
	struct state_list states;
	const char *comm;
	const char *cgroup;
	const char *unit;
	const char *layer;
	const char *op;
	const char *disk;
	bool queued;
	bool milliseconds;
	bool breakdown;
	bool over_time;
	const char *window; /* this and the next three: texts that range_resolve() parses */
	const char *since;
	const char *until;
	const char *at;
	int64_t top;
	const char *sort;
	const char *by;
	bool reverse;
	bool idle;
	bool is_short;
	bool lines;
	bool strict;
	bool delimited;
	bool chain;
	bool annotations;
	bool offset;
	bool verbose;
	const struct format *format;
	const char *output;
	char message[OPTION_MESSAGE_MAX]; /* after an error: what is wrong, and what would be right
					   */
};

void options_init(struct options *options);

/* Writes a message into options->message. Returns -EINVAL. */
int option_complain(struct options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Parses argv[1..argc) by the options of the sets; argv[0] is the verb. At most max_arguments (0 to
 * 2) words may be no options. Returns 0, or -EINVAL with options->message.
 */
int options_parse(struct options *options, unsigned sets, size_t max_arguments, int argc,
		  char **argv);

/* True if the filter names processes or threads: by id, name, cgroup or unit. */
bool options_name_somebody(const struct options *options);

/* Prints the options of the sets, one per line. */
void options_print_help(FILE *out, unsigned sets);

#endif

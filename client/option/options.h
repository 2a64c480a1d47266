/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_OPTION_OPTIONS_H
#define STACKD_CLIENT_OPTION_OPTIONS_H

/*
 * Parses the words after the verb into checked values. The parser and --help use the same table of
 * options; the bash completion reads the output of --help, and a test compares that output with the
 * man page. Texts in the parsed options point into argv; the caller owns both. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Groups of options. Each verb takes the options of some of these groups. */
enum option_set {
	OPTIONS_COMMON = 1 << 0, /* --socket, --help and --version, which every verb takes */
	OPTIONS_FORMAT = 1 << 1,
	OPTIONS_RANGE = 1 << 2,
	OPTIONS_FILTER = 1 << 3,
	OPTIONS_STACKS = 1 << 4,
	OPTIONS_ORDER = 1 << 5,
	OPTIONS_CHECK = 1 << 6,
	OPTIONS_SESSION = 1 << 7, /* options that say what a session records, such as --cpu */
	OPTIONS_START = 1 << 8,
	OPTIONS_RECORD = 1 << 9,
	OPTIONS_WATCH = 1 << 10,
	OPTIONS_CALLS = 1 << 11, /* options for tracing functions: --regexp and --rate */
	OPTIONS_LIST = 1 << 12,
	OPTIONS_SNOOP = 1 << 13,  /* options of the verb snoop for printing calls */
	OPTIONS_LAYERS = 1 << 14, /* filters of the probe iolat */
	OPTIONS_VIEWS = 1 << 15,  /* options that affect only the output of iolat or offwake */
	OPTIONS_ONCE = 1 << 16,	  /* options for verbs that print one answer; watch prints many */
	OPTIONS_SLICES = 1 << 17, /* --each and --range: several answers about one probe */
	OPTIONS_DIFF = 1 << 18,	  /* options for comparing two ranges */
	OPTIONS_REPORT = 1 << 19, /* options of the page */
	OPTIONS_ROWS = 1 << 20,	  /* --stacks: for verbs whose text has a line for each row */
	OPTIONS_PICK = 1 << 21,	  /* filters that only answers have, not sessions */
	OPTIONS_STUCK = 1 << 22,  /* options of the verb stuck */
	OPTIONS_PAGER = 1 << 23,  /* --no-pager: for verbs that print an answer and end */
	OPTIONS_OUTPUT = 1 << 24, /* --output, for verbs that do not take OPTIONS_ONCE */
	OPTIONS_WAITS = 1 << 25,  /* filters of waits, by length and state: not for calls */
	OPTIONS_HOSTS = 1 << 26,  /* --host, for answers of a fleet */
};

/* The maximum numbers of members of lists, and the sizes of texts in bytes. */
enum {
	OPTION_IDS_MAX = 256,
	OPTION_STATES_MAX = 32,
	OPTION_STATE_LEN = 16,
	OPTION_REASONS_MAX = 32,
	OPTION_REASON_LEN = 32,
	OPTION_NAMES_MAX = 32, /* as many as the daemon allows in a list */
	OPTION_MESSAGE_MAX = 512,
	OPTION_RANGES_MAX = 256, /* as many as the daemon allows in a call */
};

struct format;

struct id_list {
	int64_t v[OPTION_IDS_MAX];
	size_t n;
};

struct text_list {
	const char *v[OPTION_RANGES_MAX];
	size_t n;
};

struct name_list {
	const char *v[OPTION_NAMES_MAX];
	size_t n;
};

struct state_list {
	char v[OPTION_STATES_MAX][OPTION_STATE_LEN];
	size_t n;
};

struct reason_list {
	char v[OPTION_REASONS_MAX][OPTION_REASON_LEN];
	size_t n;
};

/*
 * The values of the options. An option that is not on the command line is NULL, false or
 * WIRE_ABSENT.
 */
struct options {
	/* The first word that is not an option: a probe, a session, a verb or a function. */
	const char *argument;
	const char *function; /* the second word that is not an option */
	const char *socket;
	bool fleet;
	bool help;
	bool version;
	bool no_pager;
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
	int64_t rate; /* maximum number of calls printed per second */
	bool regexp;
	const char *functions; /* pattern of functions that `stackctl probes` lists */
	int64_t duration_ns;   /* value of --for or --duration */
	int64_t interval_ns;
	int64_t each_ns; /* value of --each; 0: a slice for each window */
	const char *name;
	int64_t min_block_ns;
	int64_t max_block_ns;
	struct state_list states;
	struct reason_list reasons; /* words or globs, which the daemon checks */
	struct name_list comms;
	struct name_list cgroups;
	struct name_list units;
	/* values of --not-pid and the like, which leave out what matches one of them */
	struct id_list not_pids;
	struct state_list not_states;
	struct reason_list not_reasons;
	struct name_list not_comms;
	struct name_list not_cgroups;
	struct name_list not_units;
	struct name_list in_functions; /* values of --function */
	struct name_list not_functions;
	struct name_list callers;
	struct name_list hosts;
	const char *layer;
	const char *op;
	const char *disk;
	bool queued;
	bool milliseconds;
	bool breakdown;
	bool over_time;
	/* Unparsed texts of --for, --since, --until and --at; range_resolve() parses them. */
	const char *window;
	const char *window_name; /* the option that set `window`: "for" or "window" */
	const char *since;
	const char *until;
	const char *at;
	const char *base;	 /* unparsed value of --base; range_and_base() parses it */
	struct text_list ranges; /* unparsed values of --range; ranges_resolve() parses them */
	int64_t top;
	int64_t max_size;	   /* of a report, in bytes */
	const char *report_format; /* "page" or "perfetto"; NULL: as the file is named */
	const char *sort;
	const char *by;
	bool reverse;
	bool idle;
	bool no_idle;
	bool stacks;
	bool is_short;
	bool lines;
	bool build_ids;
	bool debuginfod;
	int64_t debuginfod_ns; /* value of --debuginfod-timeout */
	bool strict;
	bool fail;
	bool is_stuck; /* the verb is stuck */
	bool delimited;
	bool chain;
	bool annotations;
	bool offset;
	bool verbose;
	const struct format *format;
	const char *format_option; /* name of the option that set `format`; NULL: none did */
	const char *output;
	/* After an error: what is wrong with the command line, and what would be right. */
	char message[OPTION_MESSAGE_MAX];
};

void options_init(struct options *options);

/* Writes a formatted error message into options->message. Returns -EINVAL. */
int option_complain(struct options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Parses argv[1..argc) as options of the groups in `sets`; argv[0] is the verb. Besides options,
 * there may be at most max_arguments other words (0 to 2). Returns 0, or -EINVAL with a message in
 * options->message.
 */
int options_parse(struct options *options, unsigned sets, size_t max_arguments, int argc,
		  char **argv);

/* True if the filter names processes or threads: by id, name, cgroup or unit. */
bool options_name_somebody(const struct options *options);

/* True if some waits or samples of the threads that the filter selects are left out. */
bool options_pick_rows(const struct options *options);

/* Drops the filters that only answers have, not sessions. */
void options_drop_picks(struct options *options);

/*
 * Prints an option, such as "-p, --pid P,..", and beside it the help text, in as many lines as it
 * needs. `width` is the width of the column for the option.
 */
void option_print_help(FILE *out, const char *left, int width, const char *help);

/* Prints the options of the groups in `sets`, each with its help text. */
void options_print_help(FILE *out, unsigned sets);

#endif

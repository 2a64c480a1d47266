/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_VERB_VERB_H
#define STACKD_CLIENT_VERB_VERB_H

/*
 * The verbs of stackctl, such as `status` in `stackctl status`. Each verb has a file with a
 * function that takes the parsed options and does the work. A function that fails prints a message
 * on standard error before it returns. Main thread.
 *
 * verb.c, which has the table of verbs, calls the files of the verbs. Only help.c, which prints the
 * table, calls verb.c; so main.c calls it, and not the table.
 */

#include <stddef.h>

#include "client/base/exit_code.h"
#include "client/option/options.h"

struct compat_tool;

struct verb {
	const char *name;
	const char *argument; /* arguments that are no options, as help shows them; may be NULL */
	const char *summary;
	unsigned sets; /* the groups of options that the verb takes: bits of enum option_set */
	enum exit_code (*run)(struct options *options); /* NULL: cmd_help(), or compat_main() */
	/*
	 * The older tool that the verb replaces; compat_main() parses the options of such a verb.
	 * NULL: the verb replaces no tool.
	 */
	const struct compat_tool *tool;
};

extern const struct verb verbs[];
extern const size_t n_verbs;

/* Returns the number of arguments that a verb takes, without options. */
size_t verb_arguments(const struct verb *verb);

/* Returns the verb with that name, or NULL. */
const struct verb *verb_find(const char *name);

/* Prints the message that there is no verb with that name, and suggests one with a similar name. */
void verb_report_unknown(const char *name);

enum exit_code cmd_status(struct options *options);
enum exit_code cmd_probes(struct options *options);
enum exit_code cmd_sessions(struct options *options);
enum exit_code cmd_windows(struct options *options);
enum exit_code cmd_snapshot(struct options *options);
enum exit_code cmd_diff(struct options *options);
enum exit_code cmd_report(struct options *options);
enum exit_code cmd_stuck(struct options *options);
enum exit_code cmd_start(struct options *options);
enum exit_code cmd_stop(struct options *options);
enum exit_code cmd_record(struct options *options);
enum exit_code cmd_snoop(struct options *options);
enum exit_code cmd_top(struct options *options);
enum exit_code cmd_watch(struct options *options);
enum exit_code cmd_metrics(struct options *options);
enum exit_code cmd_help(struct options *options);

#endif

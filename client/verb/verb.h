/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_VERB_VERB_H
#define STACKD_CLIENT_VERB_VERB_H

/*
 * The verbs: the first words that the command line may have. Each has a file with a function that
 * gets the parsed options and does the work. It has reported a failure when it returns. Main
 * thread.
 */

#include <stddef.h>

#include "client/base/exit_code.h"
#include "client/option/options.h"

struct compat_tool;

struct verb {
	const char *name;
	const char *argument; /* the words that it takes besides options, for help; NULL: none */
	const char *summary;
	unsigned sets; /* of the options that it takes, enum option_set */
	enum exit_code (*run)(struct options *options);
	const struct compat_tool *tool; /* set for an older tool, which parses its own options */
};

extern const struct verb verbs[];
extern const size_t n_verbs;

/* Returns how many words a verb takes besides options. */
size_t verb_arguments(const struct verb *verb);

/* Returns the verb of that name, or NULL. */
const struct verb *verb_find(const char *name);

/* Reports that there is no such verb, and which verb has a similar name. */
void verb_report_unknown(const char *name);

enum exit_code cmd_status(struct options *options);
enum exit_code cmd_probes(struct options *options);
enum exit_code cmd_sessions(struct options *options);
enum exit_code cmd_windows(struct options *options);
enum exit_code cmd_snapshot(struct options *options);
enum exit_code cmd_stuck(struct options *options);
enum exit_code cmd_start(struct options *options);
enum exit_code cmd_stop(struct options *options);
enum exit_code cmd_record(struct options *options);
enum exit_code cmd_snoop(struct options *options);
enum exit_code cmd_watch(struct options *options);
enum exit_code cmd_help(struct options *options);

#endif

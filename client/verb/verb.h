/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_VERB_VERB_H
#define STACKD_CLIENT_VERB_VERB_H

/*
 * What the first word of the command line may be. A verb gets its parsed options, does its work
 * and has reported every failure when it returns. One file a verb. Main thread.
 */

#include <stddef.h>

#include "client/base/exit_code.h"
#include "client/option/options.h"

struct compat_tool;

struct verb {
	const char *name;
	const char *argument; /* the word it takes besides options, NULL: none */
	const char *summary;
	unsigned sets; /* of options */
	enum exit_code (*run)(struct options *options);
	const struct compat_tool *tool; /* an older tool, which reads its words itself */
};

extern const struct verb verbs[];
extern const size_t n_verbs;

/* How many words it takes besides options. */
size_t verb_arguments(const struct verb *verb);

const struct verb *verb_find(const char *name);

/* Reports that there is no such verb, and which one may have been meant. */
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

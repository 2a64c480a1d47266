/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/verb/verb.h"

#include <string.h>

#include "client/base/message.h"
#include "client/compat/compat.h"
#include "client/option/suggest.h"
#include "common/base.h"

const struct verb verbs[] = {
	{ "status", NULL, "is the daemon well, what it costs, what it lost",
	  OPTIONS_CHECK | OPTIONS_FORMAT, cmd_status, NULL },
	{ "probes", NULL, "what can be recorded here, by which hooks",
	  OPTIONS_FORMAT | OPTIONS_LIST, cmd_probes, NULL },
	{ "sessions", NULL, "what is being recorded", OPTIONS_FORMAT, cmd_sessions, NULL },
	{ "windows", "[PROBE]", "what has been recorded and is kept",
	  OPTIONS_FORMAT | OPTIONS_RANGE, cmd_windows, NULL },
	{ "snapshot", "[PROBE]", "where the time went; without a probe, of all of them",
	  OPTIONS_FORMAT | OPTIONS_RANGE | OPTIONS_FILTER | OPTIONS_LAYERS | OPTIONS_ORDER |
		  OPTIONS_STACKS | OPTIONS_ONCE | OPTIONS_VIEWS,
	  cmd_snapshot, NULL },
	{ "stuck", NULL, "who is waiting right now, for how long, on what",
	  OPTIONS_FORMAT | OPTIONS_RANGE | OPTIONS_FILTER | OPTIONS_STACKS | OPTIONS_ONCE,
	  cmd_stuck, NULL },
	{ "start", "PROBE [FUNCTION]", "record until stop, with its own filters; prints an id",
	  OPTIONS_FILTER | OPTIONS_LAYERS | OPTIONS_SESSION | OPTIONS_CALLS | OPTIONS_START,
	  cmd_start, NULL },
	{ "stop", "ID", "end a session; what it recorded is kept", 0, cmd_stop, NULL },
	{ "record", "PROBE [FUNCTION]", "record until Ctrl-C, or for a while, and print it",
	  OPTIONS_FORMAT | OPTIONS_FILTER | OPTIONS_LAYERS | OPTIONS_SESSION | OPTIONS_CALLS |
		  OPTIONS_RECORD | OPTIONS_ORDER | OPTIONS_STACKS | OPTIONS_ONCE | OPTIONS_VIEWS,
	  cmd_record, NULL },
	{ "watch", "PROBE", "the same answer, again and again",
	  OPTIONS_FORMAT | OPTIONS_WATCH | OPTIONS_FILTER | OPTIONS_LAYERS | OPTIONS_ORDER |
		  OPTIONS_STACKS | OPTIONS_VIEWS,
	  cmd_watch, NULL },
	{ "snoop", "FUNCTION", "each call of a function with its stacks, as it happens",
	  OPTIONS_FORMAT | OPTIONS_FILTER | OPTIONS_SNOOP | OPTIONS_CALLS | OPTIONS_RECORD,
	  cmd_snoop, NULL },
	{ "offcputime", "[SEC]", "record time off the CPU, as the tool of that name", 0, NULL,
	  &compat_offcputime },
	{ "offwaketime", "[SEC]", "record waits and wakers, as the tool of that name", 0, NULL,
	  &compat_offwaketime },
	{ "profile", "[SEC]", "record samples on the CPU, as the tool of that name", 0, NULL,
	  &compat_profile },
	{ "stackcount", "PATTERN", "count calls of functions, as the tool of that name", 0, NULL,
	  &compat_stackcount },
	{ "stacksnoop", "FUNCTION", "print calls of a function, as the tool of that name", 0, NULL,
	  &compat_stacksnoop },
	{ "topwaits", "[SEC]", "record the longest waits, as the tool of that name", 0, NULL,
	  &compat_topwaits },
	{ "IOStackBreakdown", "[SEC]", "record latencies of I/O, as the tool of that name", 0, NULL,
	  &compat_iostack },
	{ "help", "VERB", "how to use a verb", 0, cmd_help, NULL },
};

const size_t n_verbs = ARRAY_SIZE(verbs);

size_t verb_arguments(const struct verb *verb)
{
	if (!verb->argument)
		return 0;
	return strchr(verb->argument, ' ') ? 2 : 1;
}

const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < n_verbs; i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

void verb_report_unknown(const char *name)
{
	struct suggestion near;

	suggestion_init(&near, name, strlen(name));
	for (size_t i = 0; i < n_verbs; i++)
		suggestion_try(&near, verbs[i].name);
	if (near.best)
		print_message("no verb %s; did you mean %s? stackctl --help lists them", name,
			      near.best);
	else
		print_message("no verb %s; stackctl --help lists them", name);
}

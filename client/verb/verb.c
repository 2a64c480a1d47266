/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/verb/verb.h"

#include <string.h>

#include "client/base/message.h"
#include "client/compat/compat.h"
#include "client/option/suggest.h"
#include "common/base.h"
#include "common/probe_kind.h"

static enum exit_code run_watch(struct options *options)
{
	if (!options->argument || !verb_find(options->argument))
		return cmd_watch(options);
	print_message("watch prints the rows of a probe, as in: stackctl watch offcpu; "
		      "stackctl top shows the overview and who is stuck, again and again");
	return EXIT_CODE_USAGE;
}

const struct verb verbs[] = {
	{ "status", NULL, "show the daemon's health, its cost and lost events",
	  OPTIONS_CHECK | OPTIONS_FORMAT | OPTIONS_PAGER, cmd_status, NULL },
	{ "probes", NULL, "list the probes: what can be recorded on this host",
	  OPTIONS_FORMAT | OPTIONS_LIST | OPTIONS_PAGER, cmd_probes, NULL },
	{ "sessions", NULL, "list the sessions: the recordings that run or ran",
	  OPTIONS_FORMAT | OPTIONS_PAGER, cmd_sessions, NULL },
	{ "windows", "[PROBE]", "list the time windows for which data is kept",
	  OPTIONS_FORMAT | OPTIONS_RANGE | OPTIONS_HOSTS | OPTIONS_PAGER, cmd_windows, NULL },
	{ "snapshot", "[PROBE]", "show where time went; without PROBE: an overview",
	  OPTIONS_FORMAT | OPTIONS_RANGE | OPTIONS_FILTER | OPTIONS_WAITS | OPTIONS_PICK |
		  OPTIONS_LAYERS | OPTIONS_ORDER | OPTIONS_STACKS | OPTIONS_ONCE | OPTIONS_PAGER |
		  OPTIONS_VIEWS | OPTIONS_SLICES | OPTIONS_ROWS | OPTIONS_HOSTS,
	  cmd_snapshot, NULL },
	{ "diff", "[PROBE] [PROBE]", "show what changed since an earlier range, or session",
	  OPTIONS_FORMAT | OPTIONS_RANGE | OPTIONS_FILTER | OPTIONS_WAITS | OPTIONS_PICK |
		  OPTIONS_LAYERS | OPTIONS_STACKS | OPTIONS_ONCE | OPTIONS_PAGER | OPTIONS_DIFF |
		  OPTIONS_ROWS | OPTIONS_HOSTS,
	  cmd_diff, NULL },
	{ "report", NULL, "write a page about a range, for a browser",
	  OPTIONS_RANGE | OPTIONS_FILTER | OPTIONS_WAITS | OPTIONS_PICK | OPTIONS_ONCE |
		  OPTIONS_REPORT | OPTIONS_HOSTS,
	  cmd_report, NULL },
	{ "stuck", NULL, "show who is waiting right now, how long and for what",
	  OPTIONS_FORMAT | OPTIONS_RANGE | OPTIONS_FILTER | OPTIONS_WAITS | OPTIONS_PICK |
		  OPTIONS_STACKS | OPTIONS_ONCE | OPTIONS_PAGER | OPTIONS_ROWS | OPTIONS_STUCK,
	  cmd_stuck, NULL },
	{ "start", "PROBE [FUNCTION]", "start a recording; print the ID to stop it with",
	  OPTIONS_FILTER | OPTIONS_WAITS | OPTIONS_LAYERS | OPTIONS_SESSION | OPTIONS_CALLS |
		  OPTIONS_START,
	  cmd_start, NULL },
	{ "stop", "ID", "end a recording; what it recorded is kept", 0, cmd_stop, NULL },
	{ "record", "PROBE [FUNCTION]", "record until Ctrl-C or for a while; print the result",
	  OPTIONS_FORMAT | OPTIONS_FILTER | OPTIONS_WAITS | OPTIONS_PICK | OPTIONS_LAYERS |
		  OPTIONS_SESSION | OPTIONS_CALLS | OPTIONS_RECORD | OPTIONS_ORDER |
		  OPTIONS_STACKS | OPTIONS_ONCE | OPTIONS_PAGER | OPTIONS_VIEWS | OPTIONS_ROWS,
	  cmd_record, NULL },
	{ "top", NULL, "show all of this full-screen, now and back in time",
	  OPTIONS_WATCH | OPTIONS_HOSTS, cmd_top, NULL },
	{ "watch", "PROBE", "print a new snapshot again and again, until Ctrl-C",
	  OPTIONS_FORMAT | OPTIONS_WATCH | OPTIONS_FILTER | OPTIONS_WAITS | OPTIONS_PICK |
		  OPTIONS_LAYERS | OPTIONS_ORDER | OPTIONS_STACKS | OPTIONS_VIEWS | OPTIONS_ROWS,
	  run_watch, NULL },
	{ "snoop", "FUNCTION", "print each call of a function as it happens",
	  OPTIONS_FORMAT | OPTIONS_FILTER | OPTIONS_SNOOP | OPTIONS_CALLS | OPTIONS_RECORD,
	  cmd_snoop, NULL },
	{ "metrics", NULL, "print counters in the text format of Prometheus", OPTIONS_OUTPUT,
	  cmd_metrics, NULL },
	{ "offcputime", "[SEC]", "record time off the CPU; works like bcc's offcputime", 0, NULL,
	  &compat_offcputime },
	{ "offwaketime", "[SEC]", "record who ended waits; works like bcc's offwaketime", 0, NULL,
	  &compat_offwaketime },
	{ "profile", "[SEC]", "record samples on the CPU; works like bcc's profile", 0, NULL,
	  &compat_profile },
	{ "stackcount", "PATTERN", "count calls of functions; works like bcc's stackcount", 0, NULL,
	  &compat_stackcount },
	{ "stacksnoop", "FUNCTION", "print calls of a function; works like bcc's stacksnoop", 0,
	  NULL, &compat_stacksnoop },
	{ "topwaits", "[SEC]", "print the longest waits, with the options of topwaits", 0, NULL,
	  &compat_topwaits },
	{ "IOStackBreakdown", "[SEC]", "print I/O latencies by layer, as IOStackBreakdown does", 0,
	  NULL, &compat_iostack },
	{ "help", "VERB", "print the options of a verb", OPTIONS_PAGER, NULL, NULL },
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

/* Words that other tools use, or by which people ask, and the commands that answer. */
static const struct {
	const char *word, *command;
} wishes[] = {
	{ "list", "sessions, windows or probes" },
	{ "ls", "sessions, windows or probes" },
	{ "ps", "stuck, or snapshot oncpu --by process" },
	{ "htop", "top" },
	{ "slow", "top" },
	{ "live", "top" },
	{ "overview", "snapshot" },
	{ "show", "snapshot" },
	{ "hung", "stuck" },
	{ "hang", "stuck" },
	{ "lock", "stuck" },
	{ "locks", "stuck" },
	{ "deadlock", "stuck" },
	{ "disk", "snapshot iolat" },
	{ "io", "snapshot iolat" },
	{ "cpu", "snapshot oncpu --by process" },
	{ "flamegraph", "snapshot oncpu --output cpu.svg" },
	{ "svg", "snapshot oncpu --output cpu.svg" },
	{ "save", "report --output incident.html" },
	{ "export", "report --output incident.html" },
	{ "compare", "diff" },
	{ "trace", "snoop FUNCTION" },
	{ "count", "record stackcount FUNCTION --for 5s" },
	{ "health", "status" },
	{ "prometheus", "metrics" },
};

/* Returns the command that somebody who typed `name` as a verb may want; NULL: none is known. */
static const char *wish_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(wishes); i++)
		if (strcmp(wishes[i].word, name) == 0)
			return wishes[i].command;
	return NULL;
}

void verb_report_unknown(const char *name)
{
	const char *wish = wish_of(name);
	struct suggestion near;
	enum probe_kind kind;

	if (probe_kind_find(name, &kind)) {
		print_message("%s is a probe, not a verb, as in: stackctl %s %s", name,
			      probe_kind_has(kind, PROBE_FUNCTIONS) ? "record" : "snapshot", name);
		return;
	}
	if (wish) {
		print_message("no verb %s; what you look for may be: stackctl %s", name, wish);
		return;
	}
	if (name[0] && strspn(name, "0123456789") == strlen(name)) {
		print_message("no verb %s; a process is: stackctl snapshot offcpu -p %s", name,
			      name);
		return;
	}
	suggestion_init(&near, name, strlen(name));
	for (size_t i = 0; i < n_verbs; i++)
		suggestion_try(&near, verbs[i].name);
	if (near.best)
		print_message("no verb %s; did you mean %s? stackctl --help lists them", name,
			      near.best);
	else
		print_message("no verb %s; stackctl --help lists them", name);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>

#include "client/fetch.h"
#include "client/report.h"
#include "client/snapshot.h"
#include "client/term.h"
#include "client/verb.h"
#include "proto/base.h"

/* Which probes there would be to choose from. */
static enum exit_code report_choice(const struct options *options)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	_cleanup_(freep) char *names = NULL;
	struct wire_probes_reply reply;
	enum exit_code code;
	size_t size;
	FILE *out;

	code = fetch_probes(options, arena, &reply);
	if (code != EXIT_CODE_OK)
		return code;
	out = must(open_memstream(&names, &size));
	for (size_t i = 0; i < reply.probes.n; i++)
		fprintf(out, "%s%s", i == 0 ? "" : ", ", reply.probes.v[i].name);
	fclose(out);
	report("a snapshot of which probe? here: %s; as in: stackctl snapshot offcpu",
	       reply.probes.n > 0 && names ? names : "none");
	return EXIT_CODE_USAGE;
}

enum exit_code cmd_snapshot(struct options *options)
{
	if (!options->argument || options->argument[0] == '\0')
		return report_choice(options);
	return snapshot_run(options, options->argument, false);
}

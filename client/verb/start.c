/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>

#include "client/base/message.h"
#include "client/call/output.h"
#include "client/call/recording.h"
#include "client/verb/verb.h"
#include "common/base.h"

/* Prints only the id of the session, which `stackctl stop` needs, so that scripts can read it. */
enum exit_code cmd_start(struct options *options)
{
	_cleanup_(recording_fini) struct recording recording = {};
	struct output output;
	enum exit_code code;

	if (!options->argument || options->argument[0] == '\0')
		return recording_report_choice("start");
	code = recording_check_probe(options);
	if (code != EXIT_CODE_OK)
		return code;
	code = recording_start(options, false, &recording);
	if (code != EXIT_CODE_OK)
		return code;
	output_open(&output, NULL, NULL, NULL, 0);
	fprintf(output.out, "%s\n", recording.session.id);
	code = output_close(&output);
	if (code != EXIT_CODE_OK &&
	    recording_stop(options, recording.session.id, NULL) == EXIT_CODE_OK)
		print_message("session %s is stopped, as its id could not be printed",
			      recording.session.id);
	return code;
}

enum exit_code cmd_stop(struct options *options)
{
	if (!options->argument || options->argument[0] == '\0') {
		print_message(
			"stop needs the id of a session, which stackctl sessions lists; to stop the "
			"daemon: systemctl stop stackd");
		return EXIT_CODE_USAGE;
	}
	return recording_stop(options, options->argument, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "build_config.h"
#include "client/base/message.h"
#include "client/call/named.h"
#include "client/call/output.h"
#include "client/call/pager.h"
#include "client/compat/compat.h"
#include "client/render/formats.h"
#include "client/verb/verb.h"
#include "common/inherited.h"

/* Whom to ask, as said in front of the verb. */
struct place {
	const char *socket; /* value of -S; NULL: not given */
	bool fleet;
};

/*
 * Parses the options -S and --fleet in front of the verb. Returns the index of the first word after
 * them.
 */
static int parse_place(int argc, char **argv, struct place *place)
{
	int i = 1;

	while (i < argc && argv[i][0] == '-') {
		if (strcmp(argv[i], "-S") == 0 || strcmp(argv[i], "--socket") == 0) {
			if (i + 1 >= argc)
				break;
			place->socket = argv[i + 1];
			i += 2;
		} else if (strncmp(argv[i], "-S", 2) == 0) {
			place->socket = argv[i++] + 2;
		} else if (strncmp(argv[i], "--socket=", 9) == 0) {
			place->socket = argv[i++] + 9;
		} else if (strcmp(argv[i], "--fleet") == 0) {
			place->fleet = true;
			i++;
		} else {
			break;
		}
	}
	return i;
}

static enum exit_code print_version(void)
{
	struct output output;

	output_open(&output, NULL, NULL, NULL, 0);
	fprintf(output.out, "stackctl %s\n", STACKD_VERSION);
	return output_close(&output);
}

static enum exit_code run(const struct verb *verb, const struct place *place, int argc, char **argv)
{
	struct options options;
	enum exit_code code;

	if (verb->tool && place->fleet) {
		print_message("%s records on this host: without --fleet", verb->name);
		return EXIT_CODE_USAGE;
	}
	if (verb->tool)
		return compat_main(verb->tool, place->socket, argc, argv);
	options_init(&options);
	options.socket = place->socket;
	options.fleet = place->fleet;
	if (options_parse(&options, verb->sets, verb_arguments(verb), argc, argv) < 0) {
		print_message("%s", options.message);
		return EXIT_CODE_USAGE;
	}
	if (verb->sets & OPTIONS_PAGER && !options.no_pager)
		pager_allow();
	if (options.version)
		return print_version();
	if (options.help) {
		options.argument = verb->name;
		return cmd_help(&options);
	}
	code = call_check_names(&options);
	if (code != EXIT_CODE_OK)
		return code;
	code = verb->run ? verb->run(&options) : cmd_help(&options);
	/*
	 * A stream of rows stops when the user leaves the pager. What --fail and --strict ask about
	 * is not known then.
	 */
	return code == EXIT_CODE_IO && pager_was_left() && !options.fail && !options.strict
		       ? EXIT_CODE_OK
		       : code;
}

/* Runs the verb status for a command line without a verb, then prints a hint at other verbs. */
static enum exit_code run_default(const struct place *place, int argc, char **argv)
{
	char name[] = "status";
	struct options options;
	enum exit_code code;

	argv[0] = name;
	options_init(&options);
	options.socket = place->socket;
	options.fleet = place->fleet;
	if (options_parse(&options, verb_find(name)->sets, 0, argc, argv) < 0) {
		print_message("%s", options.message);
		return EXIT_CODE_USAGE;
	}
	if (!options.no_pager)
		pager_allow();
	if (options.version)
		return print_version();
	if (options.help)
		return cmd_help(&options);
	code = cmd_status(&options);
	if (code == EXIT_CODE_OK && options.format->is_for_people && !options.check)
		fputs("\nnext: stackctl stuck, or stackctl snapshot offcpu; stackctl --help lists all verbs\n",
		      stderr);
	return code;
}

int main(int argc, char **argv)
{
	const struct verb *verb;
	struct place place = { 0 };
	int first;

	inherited_settle();
	/*
	 * stackctl prints names as UTF-8 in every locale; wcwidth() needs a UTF-8 locale to measure
	 * them.
	 */
	setlocale(LC_CTYPE, "C.UTF-8");

	first = parse_place(argc, argv, &place);
	if (place.socket && place.socket[0] == '\0') {
		print_message("--socket has an empty value; it takes PATH");
		return EXIT_CODE_USAGE;
	}
	if (first >= argc || argv[first][0] == '-')
		return (int)run_default(&place, argc - first + 1, argv + first - 1);
	verb = verb_find(argv[first]);
	if (!verb) {
		verb_report_unknown(argv[first]);
		return EXIT_CODE_USAGE;
	}
	return (int)run(verb, &place, argc - first, argv + first);
}

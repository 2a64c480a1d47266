/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build_config.h"
#include "common/base.h"
#include "common/inherited.h"
#include "common/write_error.h"
#include "fleet/verb.h"

enum { OPTION_APPLY = 256, OPTION_MODERN, OPTION_ONCE, OPTION_DUMP_CONFIG, OPTION_VERSION };

static const struct option long_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "option", required_argument, NULL, 'o' },
	{ "apply", no_argument, NULL, OPTION_APPLY },
	{ "modern", no_argument, NULL, OPTION_MODERN },
	{ "once", no_argument, NULL, OPTION_ONCE },
	{ "dump-config", no_argument, NULL, OPTION_DUMP_CONFIG },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const struct fleet_verb verbs[] = {
	{ "schema", cmd_schema },
	{ "send", cmd_send },
	{ "serve", cmd_serve },
};

static void print_help(void)
{
	puts("Usage: stackd-fleet [OPTION]... schema [--modern] [--apply]\n"
	     "       stackd-fleet [OPTION]... send [--once]\n"
	     "       stackd-fleet [OPTION]... serve\n"
	     "Keeps what stackd records on many hosts in ClickHouse.\n"
	     "\n"
	     "  schema                           print the statements that make the tables\n"
	     "      --apply                      run them, on each server, as far as needed\n"
	     "      --modern                     for ClickHouse 22.3 and later\n"
	     "  send                             send what the daemon of this host records\n"
	     "      --once                       send what is missing now, and exit\n"
	     "  serve                            answer stackctl --fleet from the tables\n"
	     "\n"
	     "  -c, --config FILE                read FILE and not\n"
	     "                                   " STACKD_FLEET_CONFIG_FILE "\n"
	     "  -o, --option SECTION.KEY=VALUE   set one value; it overrides the file\n"
	     "      --dump-config                print every value, and exit\n"
	     "      --version                    print the version, and exit\n"
	     "  -h, --help                       print this, and exit\n"
	     "\n"
	     "See stackd-fleet(1).");
}

static int fail_usage(void)
{
	fputs("stackd-fleet: see 'stackd-fleet --help'\n", stderr);
	return FLEET_EXIT_USAGE;
}

static const struct fleet_verb *verb_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	return NULL;
}

int fleet_output_end(void)
{
	return stdout_finish("stackd-fleet") ? FLEET_EXIT_FAILED : FLEET_EXIT_OK;
}

/* Loads the settings, then runs the verb or, without one, prints the settings. */
static int run(const struct fleet_verb *verb, const struct fleet_options *options)
{
	_cleanup_(fleet_config_freep) struct fleet_config *config = NULL;
	struct fleet_error error = { 0 };
	int r = fleet_config_load(options->config_path, options->overrides, options->n_overrides,
				  &config, &error);

	if (r < 0) {
		fprintf(stderr, "stackd-fleet: %s\n", error.text);
		return FLEET_EXIT_CONFIG;
	}
	if (verb)
		return verb->run(config, options);
	fleet_config_dump(config, stdout);
	return fleet_output_end();
}

/* Takes one option. Returns 0; or, with the code to exit with in *code, 1. */
static int take_option(struct fleet_options *options, int option, bool *dumps, int *code)
{
	*code = FLEET_EXIT_OK;
	switch (option) {
	case 'c':
		options->config_path = optarg;
		return 0;
	case 'o':
		options->overrides[options->n_overrides++] = optarg;
		return 0;
	case OPTION_APPLY:
		options->apply = true;
		return 0;
	case OPTION_MODERN:
		options->modern = true;
		return 0;
	case OPTION_ONCE:
		options->once = true;
		return 0;
	case OPTION_DUMP_CONFIG:
		*dumps = true;
		return 0;
	case OPTION_VERSION:
		puts("stackd-fleet " STACKD_VERSION);
		*code = fleet_output_end();
		return 1;
	case 'h':
		print_help();
		*code = fleet_output_end();
		return 1;
	default: /* getopt_long() has printed an error message */
		*code = fail_usage();
		return 1;
	}
}

int main(int argc, char **argv)
{
	_cleanup_(freep) char **overrides = calloc((size_t)argc + 1, sizeof(*overrides));
	struct fleet_options options = { .overrides = overrides };
	const struct fleet_verb *verb = NULL;
	bool dumps = false;
	int option, code;

	inherited_settle();
	if (!overrides)
		return FLEET_EXIT_FAILED;
	while ((option = getopt_long(argc, argv, "c:o:h", long_options, NULL)) != -1)
		if (take_option(&options, option, &dumps, &code) != 0)
			return code;
	if (optind < argc) {
		verb = verb_find(argv[optind]);
		if (!verb) {
			fprintf(stderr, "stackd-fleet: no verb '%s'\n", argv[optind]);
			return fail_usage();
		}
		optind++;
	}
	if (optind < argc || (verb != NULL) == dumps)
		return fail_usage();
	if (((options.apply || options.modern) && verb && verb->run != cmd_schema) ||
	    (options.once && verb && verb->run != cmd_send)) {
		fprintf(stderr,
			"stackd-fleet: --apply and --modern go with schema, --once with send\n");
		return fail_usage();
	}
	return run(verb, &options);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "build_config.h"
#include "common/base.h"

enum {
	OPTION_CHECK_CONFIG = 256,
	OPTION_DUMP_CONFIG,
	OPTION_SERVE_ONLY,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "option", required_argument, NULL, 'o' },
	{ "check-config", no_argument, NULL, OPTION_CHECK_CONFIG },
	{ "dump-config", no_argument, NULL, OPTION_DUMP_CONFIG },
	{ "serve-only", no_argument, NULL, OPTION_SERVE_ONLY },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void print_help(void)
{
	puts("Usage: stackd [OPTION]...\n"
	     "Records where threads wait and what runs on the CPUs. stackctl shows the\n"
	     "results. stackd runs in the foreground and needs root.\n"
	     "\n"
	     "  -c, --config FILE                read FILE and FILE.d/*.conf instead of\n"
	     "                                   " STACKD_CONFIG_FILE "\n"
	     "  -o, --option SECTION.KEY=VALUE   set one value; it overrides the files\n"
	     "      --check-config               check the configuration, and exit\n"
	     "      --dump-config                print every value and where it was set, and exit\n"
	     "      --serve-only                 record nothing; answer queries from the database\n"
	     "                                   on disk. Needs only the right to read that file.\n"
	     "      --version                    print the version, and exit\n"
	     "  -h, --help                       print this, and exit\n"
	     "\n"
	     "See stackd(8) and stackd.conf(5).");
}

static int fail_usage(void)
{
	fputs("stackd: see 'stackd --help'\n", stderr);
	return -EINVAL;
}

static int set_action(struct options *options, enum options_action action)
{
	if (options->action != OPTIONS_RUN && options->action != action) {
		fputs("stackd: --check-config, --dump-config and --serve-only: give only one of them\n",
		      stderr);
		return fail_usage();
	}
	options->action = action;
	return 0;
}

static int handle_option(struct options *options, int option)
{
	switch (option) {
	case 'c':
		options->config_path = optarg;
		return 0;
	case 'o':
		options->overrides[options->n_overrides++] = optarg;
		return 0;
	case OPTION_CHECK_CONFIG:
		return set_action(options, OPTIONS_CHECK_CONFIG);
	case OPTION_DUMP_CONFIG:
		return set_action(options, OPTIONS_DUMP_CONFIG);
	case OPTION_SERVE_ONLY:
		return set_action(options, OPTIONS_SERVE_ONLY);
	case OPTION_VERSION:
		puts("stackd " STACKD_VERSION);
		return 1;
	case 'h':
		print_help();
		return 1;
	default: /* getopt_long() has printed an error message */
		return fail_usage();
	}
}

int options_parse(int argc, char *argv[], struct options *options_out)
{
	_cleanup_(options_fini) struct options options = { 0 };
	int option, r = 0;

	options.overrides = calloc((size_t)argc + 1, sizeof(*options.overrides));
	if (!options.overrides)
		return -ENOMEM;
	optind = 0;
	while (r == 0 && (option = getopt_long(argc, argv, "c:o:h", long_options, NULL)) != -1)
		r = handle_option(&options, option);
	if (r != 0)
		return r;
	if (optind < argc) {
		fprintf(stderr, "stackd: unexpected argument '%s'\n", argv[optind]);
		return fail_usage();
	}
	*options_out = options;
	options.overrides = NULL;
	return 0;
}

void options_fini(struct options *options)
{
	free(options->overrides);
	options->overrides = NULL;
}

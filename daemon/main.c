/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "common/inherited.h"
#include "common/write_error.h"
#include "daemon/base/log.h"
#include "daemon/base/notify.h"
#include "daemon/config/config.h"
#include "daemon/daemon.h"
#include "daemon/exit_code.h"
#include "daemon/holder/holder.h"
#include "daemon/host/opener.h"
#include "daemon/options.h"
#include "daemon/parse/message.h"
#include "daemon/parse/worker.h"
#include "daemon/parse/zygote.h"
#include "daemon/symbol/source_lines_child.h"

/*
 * Makes the allocator return freed memory to the kernel early. By default, each of the threads that
 * read large files would keep its own freed memory, and glibc would return memory only above a
 * limit, which it may raise to 32 MiB.
 */
static void memory_setup(void)
{
	mallopt(M_ARENA_MAX, 2);
	mallopt(M_MMAP_THRESHOLD, 256 * 1024);
	mallopt(M_TRIM_THRESHOLD, 256 * 1024);
}

/* Writes out what was printed. Returns the exit code. */
static int output_end(void)
{
	return stdout_finish("stackd") ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int dump_config(struct config *config)
{
	config_dump(config, stdout);
	config_free(config);
	return output_end();
}

static int run_daemon(const struct options *options, struct config *config, int n_passed)
{
	int r = daemon_run(options, config, n_passed);

	if (r == -EPERM || r == -EACCES || r == -EOPNOTSUPP)
		return EXIT_PRIVILEGE;
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

/*
 * Loads the configuration and performs the action that the options choose. Returns the exit code.
 */
static int run(const struct options *options)
{
	struct config_error error = {};
	struct config *config;
	int n_passed = 0, r;

	if (options->action == OPTIONS_RUN || options->action == OPTIONS_SERVE_ONLY) {
		n_passed = notify_listen_fds();
		/* Before the first line for the journal, whose socket is kept open. */
		inherited_leave(NOTIFY_FDS_START + (n_passed > 0 ? n_passed : 0));
	}
	r = config_load(options->config_path, options->overrides, options->n_overrides, &config,
			&error);
	if (r) {
		log_error("%s", error.text);
		return EXIT_CONFIG;
	}
	switch (options->action) {
	case OPTIONS_CHECK_CONFIG:
		config_free(config);
		return EXIT_SUCCESS;
	case OPTIONS_DUMP_CONFIG:
		return dump_config(config);
	case OPTIONS_SERVE_ONLY:
	case OPTIONS_RUN:
		break;
	}
	return run_daemon(options, config, n_passed);
}

int main(int argc, char *argv[])
{
	struct options options;
	int r;

	/*
	 * stackd runs its own executable with this argv[0] as the helper process that reads debug
	 * information.
	 */
	if (argc > 0 && strcmp(argv[0], LINES_CHILD_NAME) == 0)
		return lines_child_main();
	/*
	 * It also runs its own executable as the processes that parse and open files of strangers,
	 * and that look up who holds what others wait for.
	 */
	if (argc > 0 && strcmp(argv[0], PARSE_PROCESS_NAME) == 0)
		return zygote_main(worker_run);
	if (argc > 0 && strcmp(argv[0], OPENER_PROCESS_NAME) == 0)
		return opener_main();
	if (argc > 0 && strcmp(argv[0], HOLDER_PROCESS_NAME) == 0)
		return holder_main();
	inherited_settle();
	memory_setup();
	log_setup(LOG_TARGET_AUTO, LOG_INFO);
	r = options_parse(argc, argv, &options);
	if (r > 0)
		return output_end();
	if (r < 0)
		return EXIT_USAGE;
	r = run(&options);
	options_fini(&options);
	return r;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/base/notify.h"
#include "daemon/broker/broker.h"
#include "daemon/config/config.h"
#include "daemon/config/reload.h"
#include "daemon/exit_code.h"
#include "daemon/options.h"
#include "daemon/service/loop.h"
#include "daemon/service/server.h"
#include "daemon/service/service.h"
#include "daemon/session/recorder.h"
#include "daemon/symbol/source_lines_child.h"

#define STATUS_EVERY_NS (10 * NS_PER_S)

/* Free memory that the allocator may keep for what comes next. */
#define MEMORY_SPARE ((size_t)16 << 20)

/*
 * Signs of life in the time the service manager allows: one that a late drain did not give is soon
 * made up for. A host that stood still, or has no CPU to spare, is no reason to begin anew.
 */
enum { WATCHDOG_SIGNS = 10 };
#define DRAIN_LATE_NS (10 * NS_PER_S)

/* What runs, in the order it is started. */
struct daemon {
	const struct options *options;
	struct config *config;
	struct broker *broker;
	struct recorder recorder;
	struct loop *loop;
	struct service *service;
	struct server *server;
	struct loop_timer *status_timer;
	struct loop_timer *watchdog_timer;
};

static void on_stop_signal(int signo, void *userdata)
{
	struct daemon *daemon = userdata;

	log_event(LOG_INFO, LOG_ID_STOPPING, NULL, "stopping: %s", strsignal(signo));
	notify_stopping();
	loop_stop(daemon->loop);
}

/* Pages between pieces in use are not given back by themselves, and a big answer leaves many. */
static void memory_trim(void)
{
	if (mallinfo2().fordblks > MEMORY_SPARE)
		malloc_trim(0);
}

static void on_status(void *userdata)
{
	struct daemon *daemon = userdata;
	char line[512];

	recorder_status_line(&daemon->recorder, line, sizeof(line));
	notify_status("%s", line);
	memory_trim();
}

static void on_setting_changed(void *userdata, const char *section, const char *key,
			       const char *value, bool is_applied)
{
	if (is_applied)
		log_notice("%s.%s is %s from now on", section, key, value);
	else
		log_warning("%s.%s = %s takes a restart; until then it is as before", section, key,
			    value);
}

/* Bad settings change nothing: what holds goes on holding. */
static void on_reload(int signo, void *userdata)
{
	struct daemon *daemon = userdata;
	const struct options *options = daemon->options;
	_cleanup_(config_freep) struct config *fresh = NULL;
	struct config_error error = {};
	int r;

	notify_reloading();
	r = config_load(options->config_path, options->overrides, options->n_overrides, &fresh,
			&error);
	if (r) {
		log_error("settings are as before: %s", error.text);
	} else {
		struct config *config = daemon->config;

		r = config_reload(config, fresh, on_setting_changed, NULL);
		if (r < 0)
			log_err(r, "take over the settings");
		recorder_set_limits(&daemon->recorder);
		server_set_limits(daemon->server, config->control_max_clients,
				  config->control_idle_timeout_ns);
		log_event(LOG_INFO, LOG_ID_RELOADED, NULL, "settings read again");
	}
	notify_ready();
}

/* A sign of life only if the drains, too, are alive. */
static void on_watchdog(void *userdata)
{
	struct daemon *daemon = userdata;
	int64_t due =
		clock_ns(CLOCK_MONOTONIC) - 3 * daemon->config->window_length_ns - DRAIN_LATE_NS;

	if (sessions_last_drained_ns(daemon->recorder.sessions) >= due)
		notify_watchdog();
}

static int daemon_listen(struct daemon *daemon)
{
	struct server_options options = {
		.max_clients = daemon->config->control_max_clients,
		.max_message = daemon->config->control_max_message,
		.max_output = SERVER_MAX_OUTPUT,
		.idle_timeout_ns = daemon->config->control_idle_timeout_ns,
		.message_timeout_ns = SERVER_TIMEOUT_S * NS_PER_S,
		.write_timeout_ns = SERVER_TIMEOUT_S * NS_PER_S,
	};
	struct server_handler handler = service_handler(daemon->service);
	int r = server_new(daemon->loop, &options, &handler, &daemon->server), n;

	if (r)
		return log_err(r, "open the control server");
	service_set_server(daemon->service, daemon->server);
	n = notify_listen_fds();
	if (n < 0)
		return log_err(n, "take the sockets of the service manager");
	if (n > 1)
		return log_err(-EINVAL, "%d sockets were passed, one is needed", n);
	if (n == 1) {
		log_notice("listening on the socket that was passed; [control] socket is ignored");
		return server_listen_fd(daemon->server, NOTIFY_FDS_START);
	}
	return server_listen(daemon->server, daemon->config->control_socket,
			     daemon->config->control_group);
}

/* Clients, BPF objects and files being read take one each; select() is used by nobody here. */
static void descriptors_allow(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur >= files.rlim_max)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static int daemon_start_loop(struct daemon *daemon)
{
	static const int signals[] = { SIGTERM, SIGINT };
	int64_t watchdog = notify_watchdog_ns();
	int r = loop_new(&daemon->loop);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(signals) && !r; i++)
		r = loop_signal_add(daemon->loop, signals[i], on_stop_signal, daemon);
	if (!r)
		r = loop_signal_add(daemon->loop, SIGHUP, on_reload, daemon);
	if (!r)
		r = loop_timer_new(daemon->loop, STATUS_EVERY_NS, STATUS_EVERY_NS, on_status,
				   daemon, &daemon->status_timer);
	if (!r && watchdog > 0)
		r = loop_timer_new(daemon->loop, 0, watchdog / WATCHDOG_SIGNS, on_watchdog, daemon,
				   &daemon->watchdog_timer);
	return r;
}

/*
 * Listens first: a second daemon is told so before it puts anything into the kernel. Calls are
 * answered only when the loop runs, and by then the recorder does.
 */
static int daemon_start(struct daemon *daemon)
{
	const struct service_groups groups = {
		.query = daemon->config->control_group,
		.control = daemon->config->control_start_group,
	};
	char reason[512] = "";
	int r = recorder_check(&daemon->recorder, reason, sizeof(reason));

	if (r) {
		log_error("%s", reason);
		return r;
	}
	descriptors_allow();
	r = daemon->recorder.is_serve_only ? 0 : broker_start(&daemon->broker);
	if (r)
		return log_err(r, "start the process that opens perf events");
	daemon->recorder.broker = daemon->broker;
	r = daemon_start_loop(daemon);
	if (r)
		return log_err(r, "start the event loop");
	r = service_new(&daemon->recorder, &groups, &daemon->service);
	if (r)
		return log_err(r, "start the service");
	r = daemon_listen(daemon);
	if (r)
		return r;
	r = recorder_start(daemon->config, &daemon->recorder, reason, sizeof(reason));
	if (r)
		log_error("%s", reason[0] ? reason : strerror(-r));
	return r;
}

static void daemon_stop(struct daemon *daemon)
{
	loop_timer_free(daemon->status_timer);
	loop_timer_free(daemon->watchdog_timer);
	server_free(daemon->server);
	loop_free(daemon->loop);
	recorder_stop(&daemon->recorder);
	service_free(daemon->service);
	broker_stop(daemon->broker);
	config_free(daemon->config);
}

static int daemon_run(const struct options *options, struct config *config)
{
	struct daemon daemon = { .options = options, .config = config };
	int r;

	daemon.recorder.is_serve_only = options->action == OPTIONS_SERVE_ONLY;
	r = daemon_start(&daemon);
	if (!r) {
		recorder_log_probes(&daemon.recorder);
		on_status(&daemon);
		notify_ready();
		r = loop_run(daemon.loop);
	}
	daemon_stop(&daemon);
	if (r == -EPERM || r == -EACCES || r == -EOPNOTSUPP)
		return EXIT_PRIVILEGE;
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int run(const struct options *options)
{
	struct config_error error = {};
	struct config *config;
	int r = config_load(options->config_path, options->overrides, options->n_overrides, &config,
			    &error);

	if (r) {
		log_error("%s", error.text);
		return EXIT_CONFIG;
	}
	switch (options->action) {
	case OPTIONS_DUMP_CONFIG:
		config_dump(config, stdout);
		config_free(config);
		return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
	case OPTIONS_CHECK_CONFIG:
		config_free(config);
		return EXIT_SUCCESS;
	default:
		return daemon_run(options, config);
	}
}

/*
 * Files are read in large pieces by several threads: what they free goes back at once, and is not
 * kept by each for itself. glibc's own threshold grows with what is freed, to 32 MiB.
 */
static void memory_setup(void)
{
	mallopt(M_ARENA_MAX, 2);
	mallopt(M_MMAP_THRESHOLD, 256 * 1024);
	mallopt(M_TRIM_THRESHOLD, 256 * 1024);
}

int main(int argc, char *argv[])
{
	struct options options;
	int r;

	if (argc > 0 && strcmp(argv[0], LINES_CHILD_NAME) == 0)
		return lines_child_main();
	memory_setup();
	log_setup(LOG_TARGET_AUTO, LOG_INFO);
	r = options_parse(argc, argv, &options);
	if (r > 0)
		return EXIT_SUCCESS;
	if (r < 0)
		return EXIT_USAGE;
	r = run(&options);
	options_fini(&options);
	return r;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/daemon.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "common/base.h"
#include "daemon/base/activity.h"
#include "daemon/base/log.h"
#include "daemon/base/notify.h"
#include "daemon/broker/broker.h"
#include "daemon/config/config.h"
#include "daemon/config/reload.h"
#include "daemon/holder/holder.h"
#include "daemon/host/opener.h"
#include "daemon/options.h"
#include "daemon/parse/parser.h"
#include "daemon/service/admission.h"
#include "daemon/service/loop.h"
#include "daemon/service/server.h"
#include "daemon/service/service.h"
#include "daemon/session/recorder.h"

#define STATUS_EVERY_NS (10 * NS_PER_S)

/*
 * If the allocator holds more free memory than this, in bytes, the daemon returns it to the kernel.
 */
#define MEMORY_SPARE ((size_t)16 << 20)

/*
 * The daemon notifies the watchdog of systemd this many times in each watchdog interval, so that it
 * may skip a few notifications without being restarted.
 */
enum { WATCHDOG_SIGNS = 10, THREADS_MAX = 16 };

/* The number of files that the daemon has open without clients, on a host with some hundred
 * programs. */
enum { FILES_LEAST = 512 };

/*
 * If an always-on session has finished no window for three window lengths plus this time (in ns),
 * the watchdog is not notified. The time is long, so that the daemon is not restarted if the host
 * stood still or had no CPU time to spare.
 */
#define DRAIN_LATE_NS (10 * NS_PER_S)

/*
 * If a thread without which windows or names are missing has been at one piece of work for twelve
 * window lengths, and for this time in ns, the watchdog is not notified.
 */
#define THREAD_STUCK_NS (30 * NS_PER_S)

/* The parts of the daemon, in the order in which they are started. */
struct daemon {
	const struct options *options;
	struct config *config;
	int n_passed; /* sockets that the service manager passed; or why they cannot be taken */
	struct broker *broker;
	struct parser *parser;
	struct loop *loop;
	struct loop_timer *status_timer;
	struct loop_timer *watchdog_timer;
	struct service *service;
	struct server *server;
	struct recorder recorder;
};

static void on_stop_signal(int signo, void *userdata)
{
	struct daemon *daemon = userdata;

	log_event(LOG_INFO, LOG_ID_STOPPING, NULL, "stopping: %s", strsignal(signo));
	notify_stopping();
	loop_stop(daemon->loop);
}

static void on_setting_changed(void *userdata, const char *section, const char *key,
			       const char *value, bool is_applied)
{
	if (is_applied)
		log_notice("%s.%s is %s from now on", section, key, value);
	else
		log_warning("%s.%s = %s takes effect after a restart, not before", section, key,
			    value);
}

/* Hands the settings about answers to the service. */
static void service_limits_apply(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	const struct admission_limits limits = {
		.max_long = config->query_max_streams,
		.max_bytes = config->query_max_answers,
		.answer_bytes = config->query_max_memory + PLACE_EXTRA,
		.max_per_user = config->query_max_per_user,
		.max_wait_ns = config->query_max_wait_ns,
	};

	service_set_limits(daemon->service, &limits);
}

/* Reads the settings again. If the new ones are not valid, the daemon keeps the old ones. */
static void on_reload(int signo, void *userdata)
{
	struct daemon *daemon = userdata;
	const struct options *options = daemon->options;
	struct config *config = daemon->config;
	_cleanup_(config_freep) struct config *fresh = NULL;
	struct config_error error = {};
	int r;

	notify_reloading();
	r = config_load(options->config_path, options->overrides, options->n_overrides, &fresh,
			&error);
	if (r) {
		log_error("the settings are kept as they are: %s", error.text);
	} else {
		r = config_reload(config, fresh, on_setting_changed, NULL);
		if (r < 0)
			log_err(r, "cannot apply all settings");
		recorder_set_limits(&daemon->recorder);
		server_set_limits(daemon->server, config->control_max_clients,
				  config->control_idle_timeout_ns);
		service_limits_apply(daemon);
		log_event(LOG_INFO, LOG_ID_RELOADED, NULL, "the settings have been read again");
	}
	notify_ready();
}

/*
 * Sends the status line that `systemctl status` shows, notices if the broker process has ended, and
 * returns free memory to the kernel.
 */
static void on_status(void *userdata)
{
	struct daemon *daemon = userdata;
	char line[512];

	recorder_status_line(&daemon->recorder, line, sizeof(line));
	notify_status("%s", line);
	broker_problem(daemon->broker);
	/*
	 * After a large answer the allocator keeps many free pages. It does not return them by
	 * itself.
	 */
	if (mallinfo2().fordblks > MEMORY_SPARE)
		malloc_trim(0);
}

/* True if a thread hangs without which windows or the names in them are missing. */
static bool is_stuck(const struct daemon *daemon)
{
	struct activity_stuck stuck[THREADS_MAX];
	int64_t least_ns = 12 * daemon->config->window_length_ns;
	size_t i, n;

	if (least_ns < THREAD_STUCK_NS)
		least_ns = THREAD_STUCK_NS;
	n = activity_list_stuck(least_ns, stuck, ARRAY_SIZE(stuck));
	for (i = 0; i < n && stuck[i].kind != ACTIVITY_RECORDING; i++)
		;
	return i < n;
}

/*
 * Notifies the watchdog of systemd that the daemon is alive. Does not notify it if a thread hangs
 * that reads the data of a probe, or is needed for the names in windows.
 */
static void on_watchdog(void *userdata)
{
	struct daemon *daemon = userdata;
	int64_t due =
		clock_ns(CLOCK_MONOTONIC) - 3 * daemon->config->window_length_ns - DRAIN_LATE_NS;

	if (sessions_last_drained_ns(daemon->recorder.sessions) >= due && !is_stuck(daemon))
		notify_watchdog();
}

static int loop_start(struct daemon *daemon)
{
	const int64_t watchdog_ns = notify_watchdog_ns();
	int r = loop_new(&daemon->loop);

	if (r)
		return r;
	r = loop_signal_add(daemon->loop, SIGTERM, on_stop_signal, daemon);
	if (r)
		return r;
	r = loop_signal_add(daemon->loop, SIGINT, on_stop_signal, daemon);
	if (r)
		return r;
	r = loop_signal_add(daemon->loop, SIGHUP, on_reload, daemon);
	if (r)
		return r;
	r = loop_timer_new(daemon->loop, STATUS_EVERY_NS, STATUS_EVERY_NS, on_status, daemon,
			   &daemon->status_timer);
	if (r || watchdog_ns <= 0)
		return r;
	return loop_timer_new(daemon->loop, 0, watchdog_ns / WATCHDOG_SIGNS, on_watchdog, daemon,
			      &daemon->watchdog_timer);
}

static int service_start(struct daemon *daemon)
{
	const struct service_groups groups = {
		.query = daemon->config->control_group,
		.control = daemon->config->control_start_group,
	};
	int r = service_new(&daemon->recorder, &groups, &daemon->service);

	return r ? log_err(r, "cannot start the service") : 0;
}

/*
 * Takes the sockets that the service manager passed: the control socket, whose descriptor *out is
 * set to, and the netlink socket by which Unix sockets are looked up.
 */
static int passed_take(const struct daemon *daemon, int *out)
{
	int fd, n = daemon->n_passed;

	if (n < 0)
		return log_err(n, "cannot take the sockets of the service manager");
	for (fd = NOTIFY_FDS_START; fd < NOTIFY_FDS_START + n; fd++) {
		if (holder_diag_take(fd))
			continue;
		if (*out >= 0)
			return log_err(-EINVAL,
				       "%d sockets were passed, but only one to listen on is "
				       "needed",
				       n);
		*out = fd;
	}
	return 0;
}

static int server_start(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	const struct server_options options = {
		.max_clients = config->control_max_clients,
		.max_message = config->control_max_message,
		.max_output = SERVER_MAX_OUTPUT,
		.idle_timeout_ns = config->control_idle_timeout_ns,
		.message_timeout_ns = SERVER_TIMEOUT_S * NS_PER_S,
		.write_timeout_ns = SERVER_TIMEOUT_S * NS_PER_S,
	};
	const struct server_handler handler = service_handler(daemon->service);
	int passed = -1, r = server_new(daemon->loop, &options, &handler, &daemon->server);

	if (r)
		return log_err(r, "cannot start the control server");
	service_set_server(daemon->service, daemon->server);
	service_limits_apply(daemon);
	r = passed_take(daemon, &passed);
	if (r)
		return r;
	if (passed >= 0) {
		log_notice("listening on the socket that was passed; [control] socket is ignored");
		return server_listen_fd(daemon->server, passed);
	}
	return server_listen(daemon->server, config->control_socket, config->control_group);
}

/*
 * Raises the limit of open files to the maximum that is allowed for this process. Each client, BPF
 * object and open file takes a descriptor. High descriptor numbers do no harm, because the daemon
 * never calls select().
 */
static void descriptors_allow(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	if (files.rlim_max < FILES_LEAST)
		log_warning("only %llu files may be open, and stackd needs some %d: raise "
			    "LimitNOFILE= or ulimit -Hn",
			    (unsigned long long)files.rlim_max, FILES_LEAST);
	if (files.rlim_cur >= files.rlim_max)
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

/*
 * Checks the privileges of the process, and starts the broker process, which keeps the privilege to
 * open perf events.
 */
static int privileges_divide(struct daemon *daemon)
{
	char reason[512] = "";
	int r = recorder_check(&daemon->recorder, reason, sizeof(reason));

	if (r) {
		log_error("%s", reason);
		return r;
	}
	if (daemon->recorder.is_serve_only)
		return 0;
	r = broker_start(&daemon->broker);
	if (r)
		return log_err(r, "cannot start the process that opens perf events");
	daemon->recorder.broker = daemon->broker;
	return 0;
}

/* Starts the processes that open and parse files of strangers. */
static int parser_start(struct daemon *daemon)
{
	int r = parser_new(NULL, &daemon->parser);

	opener_start(&(struct opener_options){ 0 });
	if (r)
		return log_err(r, "cannot start the process that parses files");
	daemon->recorder.parser = daemon->parser;
	return 0;
}

static int recording_start(struct daemon *daemon)
{
	char reason[512] = "";
	int r = recorder_start(daemon->config, &daemon->recorder, reason, sizeof(reason));

	if (r) {
		log_error("%s", reason[0] ? reason : strerror(-r));
		return r;
	}
	recorder_log_probes(&daemon->recorder);
	on_status(daemon);
	notify_ready();
	return 0;
}

/*
 * Starts all parts of the daemon. The daemon listens before it records, so that a second daemon
 * fails before it loads anything into the kernel. Requests are answered only after the start, when
 * the event loop runs.
 */
static int daemon_start(struct daemon *daemon)
{
	int r;

	descriptors_allow();
	r = privileges_divide(daemon);
	if (r)
		return r;
	r = parser_start(daemon);
	if (r)
		return r;
	r = loop_start(daemon);
	if (r)
		return log_err(r, "cannot start the event loop");
	r = service_start(daemon);
	if (r)
		return r;
	r = server_start(daemon);
	if (r)
		return r;
	return recording_start(daemon);
}

/*
 * Stops all parts of the daemon. Writes the open windows first: should anything that follows die or
 * hang, they are on disk.
 */
static void daemon_stop(struct daemon *daemon)
{
	recorder_end(&daemon->recorder);
	if (daemon->parser)
		parser_end(daemon->parser);
	loop_timer_free(daemon->status_timer);
	loop_timer_free(daemon->watchdog_timer);
	server_free(daemon->server);
	loop_free(daemon->loop);
	recorder_stop(&daemon->recorder);
	service_free(daemon->service);
	if (recorder_is_used(&daemon->recorder))
		return; /* as is the rest; processes that stackd started end with it */
	parser_free(daemon->parser);
	opener_stop();
	holder_stop();
	broker_stop(daemon->broker);
	config_free(daemon->config);
}

int daemon_run(const struct options *options, struct config *config, int n_passed)
{
	struct daemon daemon = { .options = options, .config = config, .n_passed = n_passed };
	int r;

	daemon.recorder.is_serve_only = options->action == OPTIONS_SERVE_ONLY;
	r = daemon_start(&daemon);
	if (!r)
		r = loop_run(daemon.loop);
	daemon_stop(&daemon);
	return r;
}

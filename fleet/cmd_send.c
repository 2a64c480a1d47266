/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/base.h"
#include "common/inherited.h"
#include "daemon/base/log.h"
#include "fleet/base/directory.h"
#include "fleet/send/sender.h"
#include "fleet/verb.h"

/* After a failure, the next round begins after about FIRST_WAIT, then twice that, up to LAST_WAIT.
 */
#define FIRST_WAIT_NS NS_PER_S
#define LAST_WAIT_NS  (60 * NS_PER_S)

static volatile sig_atomic_t is_stopped;

static void on_signal(int number)
{
	is_stopped = 1;
}

static void catch_signals(void)
{
	/* Without SA_RESTART, a signal ends a pause. */
	const struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/*
 * Locks the file that keeps a second sender of this host away. Returns 0 with the file, which has
 * to stay open; or a negative errno after a message.
 */
static int lock(const char *path, int *fd_out)
{
	int r = directory_make(path), fd;

	if (r < 0)
		return log_err(r, "cannot make the directory of %s", path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return log_err(-errno, "%s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = -errno;
		close(fd);
		if (r == -EWOULDBLOCK)
			log_error("%s is locked: another sender runs on this host", path);
		else
			log_err(r, "%s", path);
		return r;
	}
	*fd_out = fd;
	return 0;
}

static void pause_ns(int64_t ns)
{
	const struct timespec ts = timespec_ns(ns);

	if (!is_stopped)
		nanosleep(&ts, NULL);
}

/* Returns a time between half of ns and all of it, so that hosts do not act at the same time. */
static int64_t jitter(int64_t ns)
{
	return ns / 2 + (int64_t)((double)(ns - ns / 2) * drand48());
}

/* Logs that windows are not sent, if their time is not the one that was logged before. */
static void report_lost(const struct sender_stats *stats, int64_t *before_ns)
{
	if (stats->lost_since_ns == *before_ns)
		return;
	log_warning("the clock of this host was set back: windows from @%" PRId64
		    " on are not sent, because others of the same time were sent before",
		    stats->lost_since_ns / NS_PER_S);
	*before_ns = stats->lost_since_ns;
}

/* Logs how a round ended, if that is not how the one before it did. */
static void report(int r, int before, const struct fleet_error *error,
		   const struct sender_stats *stats)
{
	if (r == -EINTR || (r == before && r <= 0))
		return;
	if (r < 0)
		log_warning("cannot send, and goes on trying: %s", error->text);
	else
		log_info("sends: %" PRIu64 " windows, %" PRIu64 " gaps, %" PRIu64 " rows, %" PRIu64
			 " stacks so far",
			 stats->windows, stats->gaps, stats->rows, stats->stacks);
}

/* Sends until a signal ends it. */
static void send_forever(const struct fleet_config *config, struct sender *sender)
{
	int64_t wait_ns = FIRST_WAIT_NS, lost_ns = 0;
	struct fleet_error error;
	int before = 1;

	while (!is_stopped) {
		int r = sender_round(sender, &error);

		report(r, before, &error, sender_stats(sender));
		report_lost(sender_stats(sender), &lost_ns);
		before = r;
		if (r == 0) {
			wait_ns = FIRST_WAIT_NS;
			pause_ns(config->batch_ns / 2 + jitter(config->batch_ns));
			continue;
		}
		pause_ns(jitter(wait_ns));
		wait_ns = wait_ns < LAST_WAIT_NS / 2 ? 2 * wait_ns : LAST_WAIT_NS;
	}
}

/* Sends all that is missing now. */
static int send_once(struct sender *sender)
{
	const struct sender_stats *stats = sender_stats(sender);
	struct fleet_error error;
	int64_t lost_ns = 0;

	if (sender_round(sender, &error) < 0) {
		fprintf(stderr, "stackd-fleet: %s\n", error.text);
		return FLEET_EXIT_FAILED;
	}
	report_lost(stats, &lost_ns);
	printf("sent %" PRIu64 " windows, %" PRIu64 " gaps, %" PRIu64 " rows, %" PRIu64
	       " stacks, %" PRIu64 " bytes\n",
	       stats->windows, stats->gaps, stats->rows, stats->stacks, stats->bytes);
	return fleet_output_end();
}

int cmd_send(const struct fleet_config *config, const struct fleet_options *options)
{
	_cleanup_(sender_freep) struct sender *sender = NULL;
	_cleanup_(closep) int fd = -1;
	struct fleet_error error = { 0 };
	int r;

	inherited_leave(STDERR_FILENO + 1);
	log_setup(LOG_TARGET_AUTO, LOG_INFO);
	srand48((long)(clock_ns(CLOCK_REALTIME) ^ getpid()));
	if (lock(config->lock_file, &fd) < 0)
		return FLEET_EXIT_FAILED;
	r = sender_new(config, &is_stopped, &sender, &error);
	if (r < 0) {
		fprintf(stderr, "stackd-fleet: %s\n", error.text);
		return FLEET_EXIT_CONFIG;
	}
	catch_signals();
	if (options->once)
		return send_once(sender);
	send_forever(config, sender);
	return FLEET_EXIT_OK;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/helper_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/base/cpu_time.h"

static struct {
	pthread_mutex_t lock;
	uint64_t reported_ns; /* CPU time that helper processes have said */
	uint64_t reaped_ns; /* CPU time of those that were waited for: it is the children's, too */
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int actions_fill(posix_spawn_file_actions_t *actions, int fd)
{
	int r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);

	if (r)
		return r;
	r = posix_spawn_file_actions_adddup2(actions, STDIN_FILENO, STDOUT_FILENO);
	if (r)
		return r;
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer reports to this descriptor */
	r = posix_spawn_file_actions_adddup2(actions, STDIN_FILENO, STDERR_FILENO);
	if (r)
		return r;
#endif
	r = posix_spawn_file_actions_adddup2(actions, fd, HELPER_SOCKET_FD);
	if (r)
		return r;
	return posix_spawn_file_actions_addclosefrom_np(actions, HELPER_SOCKET_FD + 1);
}

static int execute(const char *program, char *name, int fd, pid_t *pid_out)
{
	char *argv[] = { name, NULL }, *env[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int r;

	if (posix_spawn_file_actions_init(&actions))
		return -ENOMEM;
	if (posix_spawnattr_init(&attributes)) {
		posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	r = actions_fill(&actions, fd);
	if (!r)
		r = posix_spawn(pid_out, program, &actions, &attributes, argv, env);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int helper_process_start(const char *program, char *name, pid_t *pid_out)
{
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	r = execute(program, name, ends[1], pid_out);
	close(ends[1]);
	if (r)
		close(ends[0]);
	return r ? r : ends[0];
}

int helper_process_wait(int fd, int64_t until_ns)
{
	struct pollfd end = { .fd = fd, .events = POLLIN };

	for (;;) {
		int64_t left_ns = until_ns - clock_ns(CLOCK_MONOTONIC);

		if (poll(&end, 1, left_ns > 0 ? (int)(left_ns / NS_PER_MS) + 1 : 0) > 0)
			return 0;
		if (left_ns <= 0)
			return -ETIMEDOUT;
	}
}

pid_t helper_process_reap(pid_t pid)
{
	struct rusage usage = {};
	pid_t ended;

	pthread_mutex_lock(&state.lock);
	ended = wait4(pid, NULL, WNOHANG, &usage);
	if (ended > 0)
		state.reaped_ns += (uint64_t)rusage_ns(&usage);
	pthread_mutex_unlock(&state.lock);
	return ended;
}

bool helper_process_reap_until(pid_t pid, int64_t until_ns)
{
	const struct timespec pause = { .tv_nsec = NS_PER_MS };

	while (helper_process_reap(pid) == 0) {
		if (clock_ns(CLOCK_MONOTONIC) >= until_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

void helper_process_count(uint64_t cpu_ns)
{
	pthread_mutex_lock(&state.lock);
	state.reported_ns += cpu_ns;
	pthread_mutex_unlock(&state.lock);
}

uint64_t helper_process_children_ns(void)
{
	struct rusage usage = {};
	uint64_t ns;

	pthread_mutex_lock(&state.lock);
	getrusage(RUSAGE_CHILDREN, &usage);
	ns = (uint64_t)rusage_ns(&usage) + state.reported_ns - state.reaped_ns;
	pthread_mutex_unlock(&state.lock);
	return ns;
}

void helper_process_ignore_signals(void)
{
	static const int ignored[] = {
		SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE
	};

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
}

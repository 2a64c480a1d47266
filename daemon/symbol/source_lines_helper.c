/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/source_lines_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/base/answer_time.h"
#include "daemon/base/log.h"
#include "daemon/symbol/source_lines_child.h"

/* Maximum time for which a child runs, and also its maximum CPU time. */
#define RUN_NS (5 * NS_PER_S)

#define REPLY_MAX (UINT64_C(16) << 20)

struct source_lines_helper {
	pthread_mutex_t lock; /* held while a child runs, so that only one takes memory */
	pthread_mutex_t stats_lock;
	struct source_lines_stats stats;
	uint64_t max_memory;
	int64_t run_ns;
	const char *program;
};

int source_lines_helper_new(uint64_t max_memory, struct source_lines_helper **out)
{
	struct source_lines_helper *helper = calloc(1, sizeof(*helper));

	if (!helper)
		return -ENOMEM;
	pthread_mutex_init(&helper->lock, NULL);
	pthread_mutex_init(&helper->stats_lock, NULL);
	helper->max_memory = max_memory;
	helper->program = "/proc/self/exe";
	helper->run_ns = RUN_NS;
	*out = helper;
	return 0;
}

struct source_lines_helper *source_lines_helper_free(struct source_lines_helper *helper)
{
	if (!helper)
		return NULL;
	pthread_mutex_destroy(&helper->lock);
	pthread_mutex_destroy(&helper->stats_lock);
	free(helper);
	return NULL;
}

void source_lines_helper_set_program(struct source_lines_helper *helper, const char *path,
				     int64_t run_ns)
{
	helper->program = path;
	helper->run_ns = run_ns;
}

void source_lines_helper_stats(struct source_lines_helper *helper, struct source_lines_stats *out)
{
	pthread_mutex_lock(&helper->stats_lock);
	*out = helper->stats;
	pthread_mutex_unlock(&helper->stats_lock);
}

void source_lines_helper_limits(const struct source_lines_helper *helper,
				struct lines_child_head *out)
{
	out->memory_bytes = helper->max_memory;
	out->reply_bytes = REPLY_MAX;
	out->cpu_seconds = (uint32_t)((helper->run_ns + NS_PER_S - 1) / NS_PER_S);
}

int64_t source_lines_helper_deadline(const struct source_lines_helper *helper)
{
	return clock_ns(CLOCK_MONOTONIC) + helper->run_ns;
}

/* Makes a file in memory with the given contents. Its descriptor is at least
 * SOURCE_LINES_FD_MIN. */
static int memory_file(const void *data, size_t size)
{
	_cleanup_(closep) int low = memfd_create("stackd-lines", MFD_CLOEXEC);
	int fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, SOURCE_LINES_FD_MIN);

	if (fd < 0)
		return -errno;
	if (size && write(fd, data, size) != (ssize_t)size) {
		close(fd);
		return -ENOMEM;
	}
	return fd;
}

static int actions_fill(posix_spawn_file_actions_t *actions,
			const struct source_lines_request *request, int request_fd, int reply_fd)
{
	int r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);

	if (r)
		return -r;
	r = posix_spawn_file_actions_adddup2(actions, STDIN_FILENO, STDOUT_FILENO);
	if (r)
		return -r;
	r = posix_spawn_file_actions_adddup2(actions, request_fd, LINES_CHILD_REQUEST_FD);
	if (r)
		return -r;
	r = posix_spawn_file_actions_adddup2(actions, reply_fd, LINES_CHILD_REPLY_FD);
	for (size_t i = 0; i < request->n_fds && !r; i++)
		if (request->fds[i] >= 0)
			r = posix_spawn_file_actions_adddup2(actions, request->fds[i],
							     LINES_CHILD_FIRST_FD + (int)i);
	if (r)
		return -r;
	return -posix_spawn_file_actions_addclosefrom_np(actions, LINES_CHILD_FIRST_FD +
									  (int)request->n_fds);
}

/*
 * Sets attributes that make the child start with no signal blocked or ignored, even if the calling
 * thread blocks or ignores signals.
 */
static int attributes_fill(posix_spawnattr_t *attributes)
{
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawnattr_setsigmask(attributes, &none);
	if (r)
		return -r;
	r = posix_spawnattr_setsigdefault(attributes, &all);
	if (r)
		return -r;
	return -posix_spawnattr_setflags(attributes,
					 POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int process_start(const struct source_lines_helper *helper,
			 const struct source_lines_request *request, int request_fd, int reply_fd,
			 pid_t *pid_out)
{
	static char name[] = LINES_CHILD_NAME;
	char *argv[] = { name, NULL }, *env[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r;

	if (posix_spawn_file_actions_init(&actions))
		return -ENOMEM;
	if (posix_spawnattr_init(&attributes)) {
		posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	r = actions_fill(&actions, request, request_fd, reply_fd);
	if (!r)
		r = attributes_fill(&attributes);
	if (!r)
		r = -posix_spawn(pid_out, helper->program, &actions, &attributes, argv, env);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

/* Waits until the child ends. Kills it at the time until_ns, and then sets *is_late_out. Returns
 * its wait status. */
static int process_wait(pid_t pid, int64_t until_ns, bool *is_late_out)
{
	_cleanup_(closep) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	int64_t left = until_ns - clock_ns(CLOCK_MONOTONIC);
	int status = 0, r;

	do {
		r = poll(&poll_fd, 1, left > 0 ? (int)(left / NS_PER_MS) : 0);
		left = until_ns - clock_ns(CLOCK_MONOTONIC);
	} while (r < 0 && errno == EINTR);
	*is_late_out = fd < 0 || r == 0;
	if (*is_late_out)
		kill(pid, SIGKILL);
	while (answer_time_wait(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

static int status_judge(int status, bool is_late, const char **reason)
{
	int signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (is_late || signo == SIGXCPU || signo == SIGKILL) {
		*reason = "reading debug information took too long";
		return -ETIMEDOUT;
	}
	if (signo == SIGXFSZ) {
		*reason = "the reply would be too large";
		return -E2BIG;
	}
	if (signo || WEXITSTATUS(status)) {
		*reason = "debug information is broken, or too large for [symbols] lines_memory";
		return -E2BIG;
	}
	return 0;
}

static int reply_read(int fd, void **reply_out, size_t *size_out)
{
	struct stat st;
	size_t size;
	void *reply;

	if (fstat(fd, &st) < 0)
		return -errno;
	size = (size_t)st.st_size;
	if (st.st_size < 0 || size > REPLY_MAX)
		return -E2BIG;
	reply = malloc(size + 1);
	if (!reply)
		return -ENOMEM;
	if (pread(fd, reply, size, 0) != (ssize_t)size) {
		free(reply);
		return -EIO;
	}
	*reply_out = reply;
	*size_out = size;
	return 0;
}

/* Runs one child and reads its reply. The caller holds helper->lock. */
static int process_run(struct source_lines_helper *helper,
		       const struct source_lines_request *request, int64_t until_ns,
		       void **reply_out, size_t *size_out, const char **reason)
{
	_cleanup_(closep) int request_fd = memory_file(request->data, request->size);
	_cleanup_(closep) int reply_fd = memory_file(NULL, 0);
	bool is_late;
	int status, r;
	pid_t pid;

	*reason = "there is no memory for the request";
	if (request_fd < 0 || reply_fd < 0)
		return request_fd < 0 ? request_fd : reply_fd;
	r = process_start(helper, request, request_fd, reply_fd, &pid);
	if (r) {
		*reason = "the process that reads debug information cannot be started";
		return log_err(r, "start the process that reads debug information");
	}
	status = process_wait(pid, until_ns, &is_late);
	r = reply_read(reply_fd, reply_out, size_out);
	if (r) {
		*reason = "there is no memory for the reply";
		return r;
	}
	r = status_judge(status, is_late, reason);
	if (r)
		log_notice("some source lines that were asked for are missing: %s", *reason);
	return r;
}

int source_lines_helper_run(struct source_lines_helper *helper,
			    const struct source_lines_request *request, int64_t until_ns,
			    void **reply_out, size_t *size_out, const char **reason_out)
{
	const struct timespec deadline = timespec_ns(until_ns);
	int r = -EBUSY;

	*reply_out = NULL;
	*size_out = 0;
	*reason_out = "other requests for source lines took too long";
	if (!pthread_mutex_clocklock(&helper->lock, CLOCK_MONOTONIC, &deadline)) {
		r = process_run(helper, request, until_ns, reply_out, size_out, reason_out);
		pthread_mutex_unlock(&helper->lock);
	}
	pthread_mutex_lock(&helper->stats_lock);
	helper->stats.runs++;
	helper->stats.failed += r != 0;
	pthread_mutex_unlock(&helper->stats_lock);
	return r;
}

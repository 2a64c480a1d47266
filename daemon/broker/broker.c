/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/broker/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/broker/helper.h"
#include "daemon/broker/message.h"
#include "daemon/broker/perf_event.h"
#include "daemon/host/capabilities.h"

/*
 * How many seconds to wait for an answer of the broker process. It opens an event in microseconds,
 * a kprobe in milliseconds; if it takes longer than this, it hangs.
 */
enum { ANSWER_TIMEOUT_S = 10 };

/* How long broker_stop() waits for the broker process to exit, in ms; after half of it, kills it.
 */
enum { STOP_TIMEOUT_MS = 4000, STOP_STEP_MS = 5 };

static const char process_ended[] =
	"the process stackd-broker has ended: if kernel.perf_event_paranoid is above 2, no session "
	"can trace functions or programs, and no CPU that comes online is sampled, until stackd is "
	"restarted";

struct broker {
	pid_t pid;		/* pid of the broker process; 0 if there is no such process */
	_Atomic bool has_ended; /* there was one, which ended by itself and was reaped */
	/* the socket to the broker process; -1 if there is no process or the socket failed */
	int fd;
	bool is_late; /* an answer did not come in time, and is still to come */
	/* locked while a request is sent and its answer is received, and for pid */
	pthread_mutex_t mutex;
};

/*
 * The capabilities that BPF needs. In a container whose runtime does not know both of them, BPF
 * needs CAP_SYS_ADMIN.
 */
#define ENOUGH_FOR_BPF (CAPABILITY_BIT(CAP_BPF) | CAPABILITY_BIT(CAP_PERFMON))

static int process_start(struct broker *broker)
{
	const struct timeval timeout = { .tv_sec = ANSWER_TIMEOUT_S };
	int fds[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	if (setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) < 0)
		pid = -1;
	else
		pid = fork();
	if (pid == 0)
		broker_process_run(fds[1]);
	close(fds[1]);
	if (pid < 0) {
		int r = -errno;

		close(fds[0]);
		return r;
	}
	broker->pid = pid;
	broker->fd = fds[0];
	return 0;
}

int broker_start(struct broker **out)
{
	const uint64_t permitted = capabilities_permitted();
	_cleanup_(broker_stopp) struct broker *broker = calloc(1, sizeof(*broker));
	int r = 0;

	if (!broker)
		return -ENOMEM;
	broker->fd = -1;
	pthread_mutex_init(&broker->mutex, NULL);
	if (permitted & CAPABILITY_BIT(CAP_SYS_ADMIN))
		r = process_start(broker);
	if (!r && broker->pid && (permitted & ENOUGH_FOR_BPF) == ENOUGH_FOR_BPF)
		r = capabilities_limit(permitted & ~CAPABILITY_BIT(CAP_SYS_ADMIN));
	if (r)
		return r;
	*out = TAKE(broker);
	return 0;
}

/*
 * Waits until the process has exited. A process that hangs is killed and, if that does not help
 * either, left behind.
 */
static void process_wait(pid_t pid)
{
	const struct timespec step = { .tv_nsec = STOP_STEP_MS * NS_PER_MS };
	int ms;

	for (ms = 0; pid && ms < STOP_TIMEOUT_MS; ms += STOP_STEP_MS) {
		pid_t got = waitpid(pid, NULL, WNOHANG);

		if (got == pid || (got < 0 && errno != EINTR))
			return;
		if (ms == STOP_TIMEOUT_MS / 2)
			kill(pid, SIGKILL);
		nanosleep(&step, NULL);
	}
}

struct broker *broker_stop(struct broker *broker)
{
	if (!broker)
		return NULL;
	closep(&broker->fd);
	process_wait(broker->pid);
	pthread_mutex_destroy(&broker->mutex);
	free(broker);
	return NULL;
}

void broker_stopp(struct broker **broker)
{
	*broker = broker_stop(*broker);
}

const char *broker_problem(struct broker *broker)
{
	if (!broker)
		return NULL;
	/* While a request is under way, which may take long, the next call finds out. */
	if (pthread_mutex_trylock(&broker->mutex))
		return broker->has_ended ? process_ended : NULL;
	if (broker->pid && waitpid(broker->pid, NULL, WNOHANG) == broker->pid) {
		broker->pid = 0;
		broker->has_ended = true;
		log_error("%s", process_ended);
	}
	pthread_mutex_unlock(&broker->mutex);
	return broker->has_ended ? process_ended : NULL;
}

/*
 * Receives one answer. Returns 0 and sets *result to 0 or to the negative errno that the broker
 * process sent; or returns a negative errno if no answer could be received.
 */
static int answer_receive(int fd, int *result, int *fd_out)
{
	struct broker_answer answer;
	_cleanup_(closep) int passed = -1;
	int r = broker_message_receive(fd, &answer, sizeof(answer), &passed);

	if (r)
		return r;
	if (answer.result == 0) {
		if (passed < 0)
			return -EIO;
		*fd_out = passed;
		passed = -1;
	}
	*result = answer.result;
	return 0;
}

/*
 * True if the process can be asked: all its answers have come. Receives and drops an answer that is
 * late. Called with the mutex held.
 */
static bool is_ready(struct broker *broker)
{
	struct pollfd late = { .fd = broker->fd, .events = POLLIN };
	int result, event = -1;

	if (broker->fd < 0)
		return false;
	if (broker->is_late && poll(&late, 1, 0) == 1 &&
	    !answer_receive(broker->fd, &result, &event)) {
		closep(&event);
		broker->is_late = false;
	}
	return !broker->is_late;
}

/* Sends the request and receives the answer, see answer_receive(). */
static int exchange(struct broker *broker, const struct perf_request *request, int file,
		    int *result, int *fd_out)
{
	int r = broker_message_send(broker->fd, request, sizeof(*request), file);

	if (r)
		return r;
	r = answer_receive(broker->fd, result, fd_out);
	broker->is_late = r == -EAGAIN || r == -EWOULDBLOCK;
	return broker->is_late ? 0 : r;
}

/*
 * Asks the broker process to open an event. Returns 0 or the negative errno that the process
 * answers; `refused` if there is no answer. If the answer does not come in time, the process hangs:
 * until the answer has come, the process is not asked again. On other errors, the socket is closed.
 */
static int process_ask(struct broker *broker, const struct perf_request *request, int refused,
		       int *fd_out)
{
	_cleanup_(closep) int file = -1;
	int result = refused;

	if (request->kind == PERF_UPROBE) {
		file = open(request->path, O_PATH | O_CLOEXEC);
		if (file < 0)
			return -errno;
	}
	pthread_mutex_lock(&broker->mutex);
	if (is_ready(broker) && exchange(broker, request, file, &result, fd_out)) {
		close(broker->fd);
		broker->fd = -1;
		result = refused;
	}
	pthread_mutex_unlock(&broker->mutex);
	return result;
}

static int event_open(struct broker *broker, const struct perf_request *request, int *fd_out)
{
	struct perf_types types;
	int r = perf_request_check(request);

	if (r)
		return r;
	perf_types_read(&types);
	r = perf_request_open(request, &types, fd_out);
	if ((r == -EACCES || r == -EPERM) && broker)
		r = process_ask(broker, request, r, fd_out);
	return r;
}

int broker_open_sampling(struct broker *broker, const struct broker_sampling *what, int *fd_out)
{
	const struct perf_request request = {
		.kind = PERF_SAMPLING,
		.clock = what->clock,
		.cpu = what->cpu,
		.frequency_hz = what->frequency_hz,
		.period = what->period,
	};

	return event_open(broker, &request, fd_out);
}

int broker_open_kprobe(struct broker *broker, const struct broker_kprobe *what, int *fd_out)
{
	struct perf_request request = {
		.kind = PERF_KPROBE,
		.offset = what->offset,
		.is_return = what->is_return,
	};
	const size_t len = strlen(what->function);

	if (len >= sizeof(request.function))
		return -EINVAL;
	memcpy(request.function, what->function, len);
	return event_open(broker, &request, fd_out);
}

int broker_open_uprobe(struct broker *broker, const struct broker_uprobe *what, int *fd_out)
{
	struct perf_request request = {
		.kind = PERF_UPROBE,
		.offset = what->offset,
		.counter = what->counter,
	};
	const size_t len = strlen(what->path);

	if (len >= sizeof(request.path))
		return -EINVAL;
	memcpy(request.path, what->path, len);
	return event_open(broker, &request, fd_out);
}

void broker_refusal(struct broker *broker, char *out, size_t size)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	const char *problem = broker_problem(broker);
	int level;

	if (problem)
		snprintf(out, size, "%s", problem);
	else if (!f || fscanf(f, "%d", &level) != 1)
		snprintf(out, size, "this kernel has no perf events");
	else if (level > 2)
		snprintf(out, size,
			 "kernel.perf_event_paranoid is %d, which refuses perf events without "
			 "CAP_SYS_ADMIN: start stackd by its unit, or sysctl "
			 "kernel.perf_event_paranoid=2",
			 level);
	else
		snprintf(out, size,
			 "perf events are refused although kernel.perf_event_paranoid is %d: "
			 "CAP_PERFMON is missing, or a container forbids perf_event_open",
			 level);
}

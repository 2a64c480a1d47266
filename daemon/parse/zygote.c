/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/parse/zygote.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdnoreturn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/base/thread.h"
#include "daemon/host/fd_message.h"
#include "daemon/host/helper_process.h"
#include "daemon/host/sandbox.h"
#include "daemon/parse/message.h"

/*
 * The most memory and CPU time that a worker may take. The symbol tables of the largest programs
 * take a tenth of this memory; the daemon ends a worker long before it has used this time.
 */
static const struct sandbox_limits limits = {
	.memory_bytes = UINT64_C(512) << 20,
	.cpu_s = 120,
	.files = 16,
};

/* A worker that was killed and has not ended after this time hangs in the kernel. */
#define END_NS NS_PER_S

struct child {
	pid_t pid;	   /* 0: the entry is free */
	int64_t killed_ns; /* time of CLOCK_MONOTONIC when the worker was killed; 0: it was not */
};

struct zygote {
	struct child children[PARSE_PROCESSES_MAX];
	zygote_worker_fn worker;
};

/* Removes the children that have ended. Returns how many were killed END_NS ago and have not. */
static uint32_t children_reap(struct zygote *zygote)
{
	const int64_t due = clock_ns(CLOCK_MONOTONIC) - END_NS;
	uint32_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(zygote->children); i++) {
		struct child *child = &zygote->children[i];

		if (child->pid && waitpid(child->pid, NULL, WNOHANG) != 0)
			*child = (struct child){ 0 };
		n += child->killed_ns && child->killed_ns < due;
	}
	return n;
}

static struct child *child_find(struct zygote *zygote, pid_t pid)
{
	for (size_t i = 0; i < ARRAY_SIZE(zygote->children); i++)
		if (zygote->children[i].pid == pid)
			return &zygote->children[i];
	return NULL;
}

/* Runs a worker in the forked process. */
static noreturn void child_run(zygote_worker_fn worker, int fd, bool is_urgent)
{
	prctl(PR_SET_NAME, is_urgent ? "stackd-parse+" : PARSE_PROCESS_NAME);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(HELPER_SOCKET_FD);
	if (!is_urgent)
		setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + THREAD_URGENCY);
	if (sandbox_close() < 0)
		_exit(EXIT_FAILURE);
	worker(fd);
	_exit(EXIT_SUCCESS);
}

static int64_t child_start(struct zygote *zygote, int fd, bool is_urgent)
{
	struct child *child = child_find(zygote, 0);
	pid_t pid;

	if (fd < 0)
		return -EBADF;
	if (!child)
		return -EBUSY;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		child_run(zygote->worker, fd, is_urgent);
	*child = (struct child){ .pid = pid };
	return pid;
}

static void child_kill(struct zygote *zygote, pid_t pid)
{
	struct child *child = pid > 0 ? child_find(zygote, pid) : NULL;

	/* A child that was not waited for keeps its number: no other process can have it. */
	if (child && kill(pid, SIGKILL) == 0)
		child->killed_ns = clock_ns(CLOCK_MONOTONIC);
}

/* Does nothing. It is there so that the end of a worker interrupts order_wait(). */
static void on_child(int signo)
{
}

/* Waits for an order of the daemon, and meanwhile reaps the workers that end. */
static void order_wait(struct zygote *zygote)
{
	struct pollfd end = { .fd = HELPER_SOCKET_FD, .events = POLLIN };
	sigset_t none;

	sigemptyset(&none);
	do
		children_reap(zygote);
	while (ppoll(&end, 1, NULL, &none) < 0 && errno == EINTR);
}

static int serve(struct zygote *zygote)
{
	struct parse_control order;
	struct parse_started started = { 0 };
	int fd, r = 0;
	ssize_t n;

	order_wait(zygote);
	n = fd_message_receive(HELPER_SOCKET_FD, &order, sizeof(order), &fd, 1);
	if (n == (ssize_t)sizeof(order) && order.order == PARSE_START) {
		started.n_killed = children_reap(zygote);
		started.pid = child_start(zygote, fd, order.is_urgent);
		r = fd_message_send(HELPER_SOCKET_FD, &started, sizeof(started), NULL, 0);
	} else if (n == (ssize_t)sizeof(order) && order.order == PARSE_END) {
		child_kill(zygote, (pid_t)order.pid);
	} else {
		r = -EPIPE;
	}
	closep(&fd);
	return r;
}

/* Lets the kernel end workers before other processes when there is too little memory. */
static void memory_yield(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/self/oom_score_adj", "we");

	if (f)
		fputs("1000", f);
}

int zygote_main(zygote_worker_fn worker)
{
	const struct sigaction end = { .sa_handler = on_child };
	struct zygote zygote = { .worker = worker };
	sigset_t child;

	mallopt(M_MMAP_THRESHOLD, 256 * 1024);
	mallopt(M_TRIM_THRESHOLD, 256 * 1024);
	prctl(PR_SET_NAME, PARSE_PROCESS_NAME);
	helper_process_ignore_signals();
	/* SIGCHLD comes only while order_wait() waits, so that none is missed. */
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	sigaction(SIGCHLD, &end, NULL);
	memory_yield();
	/* Workers that parse for an urgent thread are urgent; a process may lower its priority
	 * only. */
	thread_set_urgent();
	if (sandbox_enter(&limits) < 0)
		return EXIT_FAILURE;
	while (!serve(&zygote))
		;
	return EXIT_SUCCESS;
}

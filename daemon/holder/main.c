/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <linux/capability.h>

#include "common/base.h"
#include "daemon/holder/job.h"
#include "daemon/host/capabilities.h"
#include "daemon/host/fd_message.h"
#include "daemon/host/helper_process.h"

/* Looks up the questions of a job, in order, until its deadline. Returns false without memory. */
static bool job_run(struct job *job, int diag_fd)
{
	struct holder_search *search = holder_search_new(job->deadline_ns, diag_fd);

	if (!search)
		return false;
	for (size_t i = 0; i < job->n && clock_ns(CLOCK_MONOTONIC) < job->deadline_ns; i++) {
		struct found *found = &job->found[i];
		struct holder_answer *answer = &found->answer;

		*answer = (struct holder_answer){ 0 };
		holder_look_up(search, &job->questions[i], answer);
		found->has_object = answer->object;
		found->has_unknown = answer->unknown;
		snprintf(found->object, sizeof(found->object), "%s",
			 answer->object ? answer->object : "");
		snprintf(found->unknown, sizeof(found->unknown), "%s",
			 answer->unknown ? answer->unknown : "");
		holder_answers_fini(answer, 1);
		atomic_store(&job->n_done, i + 1);
	}
	holder_search_free(search);
	return true;
}

/*
 * Receives a message of the daemon, with its descriptors. Waits for it in ppoll(), and not in
 * recvmsg(), so that this wait counts as idle in the answers of stackd.
 */
static bool order_receive(int fds[static 2])
{
	struct pollfd readable = { .fd = HELPER_SOCKET_FD, .events = POLLIN };
	char order;

	ppoll(&readable, 1, NULL, NULL);
	return fd_message_receive(HELPER_SOCKET_FD, &order, sizeof(order), fds, 2) == 1;
}

int holder_main(void)
{
	const uint64_t capabilities =
		CAPABILITY_BIT(CAP_SYS_PTRACE) | CAPABILITY_BIT(CAP_DAC_READ_SEARCH);
	int fds[2], none[2];
	struct job *job;

	prctl(PR_SET_NAME, HOLDER_PROCESS_NAME);
	helper_process_ignore_signals();
	if (capabilities_limit(capabilities) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
		return EXIT_FAILURE;
	/* The descriptors of all processes take megabytes, which are of no use between two jobs. */
	mallopt(M_MMAP_THRESHOLD, 256 * 1024);
	mallopt(M_TRIM_THRESHOLD, 256 * 1024);
	if (!order_receive(fds))
		return EXIT_FAILURE;
	job = mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	if (job == MAP_FAILED)
		return EXIT_FAILURE;
	close(fds[0]);
	while (order_receive(none) && job_run(job, fds[1]) &&
	       !fd_message_send(HELPER_SOCKET_FD, "", 1, NULL, 0))
		;
	/* There is nothing to write or to free. LeakSanitizer would stop this process by ptrace. */
	_exit(EXIT_SUCCESS);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prints what oracle.bpf.c counted. For each line read it prints a line for each thread, its open
 * state counted up to "when" (ns since the epoch), then "done".
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "oracle.h"
#include "oracle.skel.h"

static __u64 clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (__u64)ts.tv_sec * 1000000000 + (__u64)ts.tv_nsec;
}

/* Counts the state that a thread is in up to now. */
static void thread_close(struct oracle_thread *t, __u64 now)
{
	__u64 from = t->out_ns;

	if (t->in_ns) {
		t->on_ns += now > t->in_ns ? now - t->in_ns : 0;
		return;
	}
	if (!t->out_ns || t->out_ns > now)
		return;
	if (!t->out_queued) {
		from = t->wakeup_ns >= t->out_ns ? t->wakeup_ns : now;
		from = t->waking_ns >= t->out_ns ? t->waking_ns : from;
	}
	t->blocked_ns += from - t->out_ns;
	t->runnable_ns += now > from ? now - from : 0;
}

/* Reads an account that may change meanwhile: two equal copies in a row are consistent. */
static int thread_read(int map, __u32 tid, struct oracle_thread *t)
{
	struct oracle_thread again;

	if (bpf_map_lookup_elem(map, &tid, &again))
		return -1;
	do {
		*t = again;
		if (bpf_map_lookup_elem(map, &tid, &again))
			return -1;
	} while (memcmp(t, &again, sizeof(again)));
	return 0;
}

static void thread_print(int map, __u32 tid)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC), epoch = clock_ns(CLOCK_REALTIME);
	struct oracle_thread t;

	if (thread_read(map, tid, &t))
		return;
	thread_close(&t, now);
	printf("thread tid=%u when=%llu on_cpu=%llu blocked=%llu runnable=%llu early=%llu"
	       " lost=%llu\n",
	       tid, epoch, t.on_ns, t.blocked_ns, t.runnable_ns, t.early_ns, t.lost_ns);
}

int main(void)
{
	struct oracle *skel = oracle__open_and_load();
	char line[16];
	int map;

	if (!skel || oracle__attach(skel)) {
		fprintf(stderr, "the oracle's programs cannot be attached\n");
		return EXIT_FAILURE;
	}
	map = bpf_map__fd(skel->maps.threads);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		__u32 tid, *last = NULL;

		while (!bpf_map_get_next_key(map, last, &tid)) {
			last = &tid;
			thread_print(map, tid);
		}
		puts("done");
		fflush(stdout);
	}
	oracle__destroy(skel);
	return EXIT_SUCCESS;
}

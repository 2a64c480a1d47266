/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Nothing lost, nothing twice: 50 rotations in a row while threads switch as fast as they can,
 * then the programs are detached and the sums over all windows are held against the counter that
 * each switch bumps before anything else. To the event.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "daemon/log.h"
#include "daemon/recorder.h"
#include "proto/base.h"

enum { ROTATIONS = 50, EXIT_SKIP = 77 };

struct sums {
	uint64_t waits;
	uint64_t spans;
	uint64_t shorts;
	uint64_t lost;
};

/* perf bench where it is installed; any two tasks that hand a byte to and fro would do. */
static pid_t load_start(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setpgid(0, 0);
	freopen("/dev/null", "w", stdout);
	freopen("/dev/null", "w", stderr);
	execlp("perf", "perf", "bench", "sched", "pipe", "-l", "100000000", NULL);
	_exit(EXIT_SKIP);
}

static void load_stop(pid_t pid)
{
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void cut_and_wait(struct recorder *recorder)
{
	uint64_t seq;

	assert_int_equal(drain_cut(recorder->drain, 10 * NS_PER_S, &seq), 0);
	assert_int_equal(history_wait(recorder->history, seq, 10 * NS_PER_S), 0);
}

static void windows_sum(struct recorder *recorder, struct sums *sums)
{
	struct history_list list;
	size_t i, k;

	assert_int_equal(history_range(recorder->history, INT64_MIN, INT64_MAX, &list), 0);
	assert_true(list.n > ROTATIONS);
	for (i = 0; i < list.n; i++) {
		const struct window *window = list.windows[i];

		if (i > 0)
			assert_int_equal(window->start_ns, list.windows[i - 1]->end_ns);
		for (k = 0; k < window->n_rows; k++)
			sums->waits += window->rows[k].count;
		sums->spans += window->n_spans;
		for (k = 0; k < window->n_images; k++)
			sums->shorts += window->images[k].sums.short_count;
	}
	history_list_fini(&list);
}

static void test_sums_equal_the_counter(void **state)
{
	struct recorder *recorder = *state;
	struct drain_stats stats;
	struct sums sums = {};
	pid_t load = load_start();
	int i;

	assert_true(load > 0);
	for (i = 0; i < ROTATIONS; i++) {
		usleep(20000);
		cut_and_wait(recorder);
	}
	probe_detach(recorder->probe);
	load_stop(load);
	/* The second one has nothing to do but what the first could not know. */
	cut_and_wait(recorder);
	cut_and_wait(recorder);
	windows_sum(recorder, &sums);
	drain_stats(recorder->drain, &stats);
	sums.lost = stats.counts.lost[LOST_WAIT_KEYS] + stats.counts.lost[LOST_WAIT_RING] +
		    stats.counts.lost[LOST_NO_MAP];
	print_message("switch-ins %" PRIu64 " (recovered %" PRIu64 ", first seen %" PRIu64
		      ", hidden %" PRIu64 ", missed %" PRIu64 "), waits %" PRIu64 ", over a cut %" PRIu64
		      ", short %" PRIu64 ", lost %" PRIu64 "\n",
		      (uint64_t)stats.counts.switch_ins, (uint64_t)stats.counts.recovered,
		      (uint64_t)stats.counts.first_seen, (uint64_t)stats.counts.hidden,
		      (uint64_t)stats.counts.lost[LOST_MISSED_IN], sums.waits, sums.spans,
		      sums.shorts, sums.lost);
	/* A switch-in whose hook the detaching overtook is on its way still. */
	sums.lost += stats.counts.pendings;
	assert_int_equal(stats.counts.lost[LOST_MISSED_IN], 0);
	/* Enough to mean something: the load did run. */
	assert_true(stats.counts.switch_ins > 10000);
	assert_int_equal(sums.waits, stats.counts.waits);
	assert_int_equal(sums.spans, stats.counts.spans);
	assert_int_equal(sums.shorts, stats.counts.shorts);
	assert_int_equal(sums.waits + sums.spans + sums.shorts + sums.lost +
				 stats.counts.first_seen + stats.counts.hidden +
				 stats.counts.lost[LOST_MISSED_IN],
			 stats.counts.switch_ins + stats.counts.recovered);
}

/* Every wait with its stacks, or none, by either hook: each way has to add up. */
static int run(int64_t min_wait_ns, char *hook)
{
	char *idle[] = { NULL };
	struct config config = {
		.window_length_ns = 3600 * NS_PER_S,
		.window_keep_ns = 3600 * NS_PER_S,
		.window_max_memory = 1 << 30,
		.symbols_max_memory = 32 << 20,
		.offcpu_enabled = true,
		.offcpu_min_wait_ns = min_wait_ns,
		.offcpu_hook = hook,
		.offcpu_max_threads = 16384,
		.offcpu_max_keys = 32768,
		.offcpu_stack_ring = 4 << 20,
		.unwind_max_memory = 16 << 20,
		.idle_functions = idle,
	};
	struct recorder recorder = {};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_sums_equal_the_counter, &recorder),
	};
	char reason[256] = "";
	int r = recorder_start(&config, &recorder, reason, sizeof(reason));

	if (r || !recorder.drain) {
		fprintf(stderr, "skipped: %s\n", reason[0] ? reason : "the probe is off");
		recorder_stop(&recorder);
		return EXIT_SKIP;
	}
	r = cmocka_run_group_tests_name(min_wait_ns ? "default" : hook, tests, NULL, NULL);
	recorder_stop(&recorder);
	return r;
}

int main(void)
{
	char hook_best[] = "auto", hook_last[] = "switch_out";
	int r;

	log_setup(LOG_TARGET_STDERR, LOG_WARNING);
	r = run(100 * NS_PER_US, hook_best);
	if (!r)
		r = run(0, hook_best);
	return r ? r : run(0, hook_last);
}

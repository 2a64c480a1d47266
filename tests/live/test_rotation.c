/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks that rotations lose nothing and count nothing twice: after many rotations in a row, while
 * threads switch as fast as they can, the programs are detached, and the sums over all windows must
 * equal, to the event, the counter that each switch increases before anything else.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "bpf/brake.h"
#include "bpf/io_shared.h"
#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/session/internal.h"
#include "daemon/session/recorder.h"

/* How long a window may take until it is resolved: an emulator that shares its CPUs is slow. */
#define PATIENCE_NS (180 * NS_PER_S)

/* A slow machine may have more rotations, until there were enough switches. */
enum { MAX_ROTATIONS = 250, SWITCHES_OF_ROTATION = 200, EXIT_SKIP = 77 };

/* The environment variable ROTATIONS; 50 if it is not set. */
static size_t rotations = 50;

struct sums {
	uint64_t samples;
	uint64_t sampled; /* samples, as the windows count them */
	uint64_t waits;
	uint64_t picked_ns; /* short waits that were recorded by chance, each as sample_below_ns */
	uint64_t spans;
	uint64_t shorts;
	uint64_t lost;
	uint64_t operations; /* ended operations of iolat, in rows by process */
	uint64_t calls;	     /* those of the layers above block, which may be slow */
	uint64_t slow;	     /* those that are also in rows by stack, not by chance */
};

static uint64_t sample_below_ns; /* setting sample_below of offcpu and offwake */
static bool is_swinging;	 /* the limit changes while windows are open */

/* The share of each CPU that a probe's walks may take, see bpf/brake.h; 0: no limit. */
static uint32_t brake_share;

/* Passes on each byte that arrives, until the process is killed or its parent ends. */
static _Noreturn void pass_bytes(int from, int to)
{
	char byte = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1)
		;
	_exit(0);
}

/*
 * Starts a process group of two processes called sched-pass that pass one byte back and forth, as
 * those of perf bench sched pipe do. Returns its id, or -1.
 */
static pid_t load_start(void)
{
	int there[2], back[2];
	pid_t pid = fork();

	if (pid)
		return pid;
	setpgid(0, 0);
	/* A program of BPF stays attached as long as anyone has its link open. */
	close_range(STDERR_FILENO + 1, ~0U, 0);
	prctl(PR_SET_NAME, "sched-pass");
	if (pipe(there) || pipe(back) || write(there[1], "x", 1) != 1)
		_exit(1);
	if (fork())
		pass_bytes(back[0], there[1]);
	pass_bytes(there[0], back[1]);
}

static void load_stop(pid_t pid)
{
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void cut_and_wait(struct recorder *recorder, struct session *session)
{
	uint64_t seq;

	assert_int_equal(session_cut(session, PATIENCE_NS, &seq), 0);
	assert_int_equal(history_wait(recorder->history, seq, PATIENCE_NS), 0);
}

static void window_sum(const struct window *window, struct sums *sums)
{
	size_t k;

	for (k = 0; k < window->n_rows; k++) {
		if (window->rows[k].state & STATE_SAMPLED)
			sums->picked_ns += window->rows[k].blocked_ns + window->rows[k].runnable_ns;
		else
			sums->waits += window->rows[k].count;
	}
	sums->spans += window->n_spans;
	for (k = 0; k < window->n_images; k++)
		sums->shorts += window->images[k].sums.short_count;
	for (k = 0; k < window->n_samples; k++)
		sums->samples += window->samples[k].count;
	for (k = 0; k < window->n_ios; k++) {
		const struct window_io *io = &window->ios[k];

		/* Rows of the queue and of the device count each request again. */
		if (io->layer == IO_LAYER_QUEUE || io->layer == IO_LAYER_DEVICE)
			continue;
		if (!io->is_slow) {
			sums->operations += io->count;
			sums->calls += io->layer < IO_LAYER_BLOCK ? io->count : 0;
		}
		if (io->is_slow & WINDOW_IO_SAMPLED)
			sums->picked_ns += io->total_ns;
		else if (io->is_slow)
			sums->slow += io->count;
	}
	sums->sampled += window->sampled;
}

/*
 * Where a wait was left to chance, the window says below which length at least. A wait of offcpu
 * that began in an earlier window is a span, and in no row, unless the window had too many rows.
 */
static void check_lengths(const struct window *window)
{
	const int64_t brake_below_ns = window->cost.brake_below_ns;
	size_t i;

	for (i = 0; i < window->n_rows; i++) {
		const struct window_row *row = &window->rows[i];

		if (row->state & STATE_SAMPLED)
			assert_true((int64_t)row->max_ns < window->sample_below_ns);
		else if (window->kind == PROBE_OFFCPU && !window->folded.rows)
			assert_true(row->max_end_ns - (int64_t)row->max_ns >= window->start_ns);
	}
	assert_true(brake_below_ns > 0 || !window->cost.braked);
	assert_true(brake_below_ns <= window->sample_below_ns);
}

static void windows_sum(struct recorder *recorder, struct session *session, struct sums *sums)
{
	struct history_list list;
	size_t i;

	assert_int_equal(history_range(recorder->history, session_info(session)->id, INT64_MIN,
				       INT64_MAX, &list),
			 0);
	assert_true(list.n > rotations);
	for (i = 0; i < list.n; i++) {
		if (i > 0)
			assert_int_equal(list.windows[i]->start_ns, list.windows[i - 1]->end_ns);
		window_sum(list.windows[i], sums);
		check_lengths(list.windows[i]);
	}
	history_list_fini(&list);
}

/*
 * Runs a session under load, detaches its programs, and sums what its windows and its counters
 * hold.
 */
static void session_exercise(struct recorder *recorder, struct session *session, uint64_t enough,
			     struct sums *sums, struct drain_stats *stats)
{
	const struct cpu_counts *counts = &stats->counts;
	pid_t load;
	size_t i;

	if (!session_is_on(session))
		fail_msg("%s", session->status.reason ? session->status.reason : "off");
	probe_set_brake(session->probe, brake_share);
	load = load_start();
	assert_true(load > 0);
	for (i = 0; i < rotations || (i < MAX_ROTATIONS && counts->switch_ins < enough); i++) {
		usleep(20000);
		if (is_swinging) {
			probe_set_sample_below(session->probe,
					       (uint64_t)(i % 4) * sample_below_ns / 2);
			probe_set_shed(session->probe, i % 3 ? SHED_FRAMES : 0,
				       (uint32_t)i % 5 * 2);
		}
		cut_and_wait(recorder, session);
		session_stats(session, stats);
	}
	probe_detach(session->probe);
	load_stop(load);
	/* The second cut only collects what could not be known at the first one. */
	cut_and_wait(recorder, session);
	cut_and_wait(recorder, session);
	windows_sum(recorder, session, sums);
	session_stats(session, stats);
}

static void check_waits(const struct sums *sums, const struct drain_stats *stats)
{
	const struct cpu_counts *counts = &stats->counts;
	uint64_t lost = counts->lost[LOST_WAIT_KEYS] + counts->lost[LOST_WAIT_RING] +
			counts->lost[LOST_NO_MAP];

	assert_int_equal(counts->lost[LOST_MISSED_IN], 0);
	print_message("switch-ins %" PRIu64 " (recovered %" PRIu64 ", first seen %" PRIu64
		      ", hidden %" PRIu64 ", filtered %" PRIu64 "), waits %" PRIu64
		      ", over a cut %" PRIu64 ", short %" PRIu64 ", lost %" PRIu64 "\n",
		      (uint64_t)counts->switch_ins, (uint64_t)counts->recovered,
		      (uint64_t)counts->first_seen, (uint64_t)counts->hidden,
		      (uint64_t)counts->filtered, sums->waits, sums->spans, sums->shorts, lost);
	assert_int_equal(sums->waits, counts->waits);
	assert_int_equal(sums->spans, counts->spans);
	assert_int_equal(sums->shorts, counts->shorts);
	/* Pending switch-ins are those whose hook was detached before it ran. */
	assert_int_equal(sums->waits + sums->spans + sums->shorts + lost + counts->pendings +
				 counts->first_seen + counts->lost[LOST_MISSED_IN] +
				 counts->hidden + counts->filtered,
			 counts->switch_ins + counts->recovered);
}

static void test_sums_equal_the_counter(void **state)
{
	struct recorder *recorder = *state;
	struct drain_stats stats;
	struct sums sums = {};

	session_exercise(recorder, sessions_always(recorder->sessions, PROBE_OFFCPU),
			 rotations * SWITCHES_OF_ROTATION, &sums, &stats);
	assert_true(stats.counts.switch_ins >= rotations * SWITCHES_OF_ROTATION);
	check_waits(&sums, &stats);
	assert_int_equal(stats.counts.sampled > 0, sample_below_ns > 0);
	if (!is_swinging)
		assert_int_equal(sums.picked_ns, stats.counts.sampled * sample_below_ns);
}

/* What a probe's walks took, and what its brakes allowed. */
struct braking {
	uint64_t walked_ns;
	uint64_t allowed_ns;
	uint64_t braked; /* waits or operations that only the brakes left to chance */
};

/* Runs a session whose brakes are on, under load, from a window on in which they were. */
static void session_brake(struct recorder *recorder, struct session *session, struct sums *sums,
			  struct drain_stats *stats, struct braking *braking)
{
	const uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t walked, i;
	int64_t begin;

	/* Without a limit, all waits were recorded since the start. */
	probe_set_brake(session->probe, brake_share);
	cut_and_wait(recorder, session);
	cut_and_wait(recorder, session);
	session_stats(session, stats);
	begin = clock_ns(CLOCK_MONOTONIC);
	walked = stats->counts.walk_ns;
	session_exercise(recorder, session, rotations * SWITCHES_OF_ROTATION, sums, stats);
	*braking = (struct braking){ .walked_ns = stats->counts.walk_ns - walked };
	for (i = 0; i < BRAKE_STEPS; i++)
		braking->braked += stats->counts.braked[i];
	braking->allowed_ns = (uint64_t)(clock_ns(CLOCK_MONOTONIC) - begin) + BRAKE_BURST_NS +
			      BRAKE_STEPS * BRAKE_STEP_NS;
	braking->allowed_ns = brake_part(braking->allowed_ns, brake_share) * cpus;
}

static void check_braking(const struct braking *braking, const struct sums *sums,
			  const struct drain_stats *stats)
{
	print_message("walks took %" PRIu64 " us, allowed were %" PRIu64 " us; %" PRIu64
		      " waits left to chance, %" PRIu64 " of them recorded\n",
		      braking->walked_ns / NS_PER_US, braking->allowed_ns / NS_PER_US,
		      braking->braked, (uint64_t)stats->counts.sampled);
	/* None would be without a brake. An emulated machine is slow, and lets fewer pass. */
	assert_true(braking->braked > 0);
	assert_true(stats->counts.sampled > 0);
	assert_true(sums->picked_ns >= stats->counts.sampled * BRAKE_LEAST_NS);
	/*
	 * Waits over the end of a window are always recorded: two threads, 50 rotations. An
	 * emulated machine walks so slowly that a walk counts for less than it takes, see
	 * BRAKE_WALK_NS.
	 */
	if (braking->walked_ns / stats->counts.sampled < BRAKE_WALK_NS / 4)
		assert_true(braking->walked_ns <= braking->allowed_ns + braking->allowed_ns / 4);
}

/*
 * While walks of all waits would take far more than their share, the brakes bound them, and no
 * event is lost or counted twice.
 */
static void test_brakes_bound_walks(void **state)
{
	struct recorder *recorder = *state;
	struct drain_stats stats;
	struct braking braking;
	struct sums sums = {};

	session_brake(recorder, sessions_always(recorder->sessions, PROBE_OFFCPU), &sums, &stats,
		      &braking);
	check_waits(&sums, &stats);
	check_braking(&braking, &sums, &stats);
}

static void check_wakes(const struct sums *sums, const struct drain_stats *stats)
{
	const struct cpu_counts *counts = &stats->counts;
	uint64_t lost = counts->lost[LOST_WAIT_KEYS] + counts->lost[LOST_NO_MAP] +
			counts->lost[LOST_NO_HOOK];

	print_message("switch-ins %" PRIu64 " (not asleep %" PRIu64 ", filtered %" PRIu64
		      "), waits %" PRIu64 ", short %" PRIu64 ", lost %" PRIu64 "\n",
		      (uint64_t)counts->switch_ins, (uint64_t)counts->first_seen,
		      (uint64_t)counts->filtered, sums->waits, (uint64_t)counts->shorts, lost);
	assert_true(counts->switch_ins >= rotations * SWITCHES_OF_ROTATION);
	assert_true(sums->waits + counts->sampled > 100);
	assert_int_equal(sums->waits, counts->waits);
	if (!is_swinging && !brake_share)
		assert_int_equal(sums->picked_ns, counts->sampled * sample_below_ns);
	assert_int_equal(sums->waits + counts->shorts + lost + counts->pendings +
				 counts->first_seen + counts->filtered,
			 counts->switch_ins);
}

/* The same for offwake, which walks the stacks of wakers, too. */
static void test_brakes_bound_wakes(void **state)
{
	struct recorder *recorder = *state;
	struct drain_stats stats;
	struct braking braking;
	struct sums sums = {};

	session_brake(recorder, sessions_always(recorder->sessions, PROBE_OFFWAKE), &sums, &stats,
		      &braking);
	check_wakes(&sums, &stats);
	check_braking(&braking, &sums, &stats);
}

/*
 * The same for iolat, with every read() and write() of a pipe as a slow operation. Of the
 * operations that the brakes do not leave to chance, each is in a row by stack.
 */
static void test_brakes_bound_operations(void **state)
{
	struct recorder *recorder = *state;
	struct session *session = sessions_always(recorder->sessions, PROBE_IOLAT);
	struct drain_stats stats;
	struct braking braking;
	struct sums sums = {};

	session_brake(recorder, session, &sums, &stats, &braking);
	print_message("operations %" PRIu64 ", by stack for sure %" PRIu64 "\n", sums.operations,
		      sums.slow);
	assert_true(sums.operations > 1000);
	assert_int_equal(sums.operations, stats.counts.ios_kept);
	assert_int_equal(sums.slow + braking.braked, sums.calls);
	check_braking(&braking, &sums, &stats);
}

static void check_samples(const struct sums *sums, const struct drain_stats *stats)
{
	const struct cpu_counts *counts = &stats->counts;

	print_message("samples %" PRIu64 " (idle %" PRIu64 ", filtered %" PRIu64 ", lost %" PRIu64
		      "), in windows %" PRIu64 "\n",
		      (uint64_t)counts->samples, (uint64_t)counts->samples_idle,
		      (uint64_t)counts->filtered, (uint64_t)counts->lost[LOST_SAMPLE_KEYS],
		      sums->samples);
	assert_true(counts->samples > 100);
	assert_int_equal(sums->sampled, counts->samples);
	/* Skipped samples for which no later one stands yet: the last ones of each CPU. */
	assert_true(counts->calls_passed <= 7 * (uint64_t)sysconf(_SC_NPROCESSORS_CONF));
	assert_true(is_swinging || !counts->calls_passed);
	assert_int_equal(sums->samples + counts->samples_idle + counts->filtered +
				 counts->lost[LOST_SAMPLE_KEYS] + counts->lost[LOST_NO_MAP] +
				 counts->calls_passed,
			 counts->samples);
}

static void test_samples_equal_the_counter(void **state)
{
	struct recorder *recorder = *state;
	struct drain_stats stats;
	struct sums sums = {};

	session_exercise(recorder, sessions_always(recorder->sessions, PROBE_ONCPU), 0, &sums,
			 &stats);
	check_samples(&sums, &stats);
}

static void test_wakes_equal_the_counter(void **state)
{
	struct recorder *recorder = *state;
	struct drain_stats stats;
	struct sums sums = {};

	session_exercise(recorder, sessions_always(recorder->sessions, PROBE_OFFWAKE),
			 rotations * SWITCHES_OF_ROTATION, &sums, &stats);
	check_wakes(&sums, &stats);
}

/* Checks that a session's filter rejects, to the event, what is not in its windows. */
static void session_filter_check(struct recorder *recorder, const struct session_request *request,
				 void (*check)(const struct sums *sums,
					       const struct drain_stats *stats))
{
	struct wire_error error = {};
	struct session *session;
	struct drain_stats stats;
	struct sums sums = {};

	if (sessions_start(recorder->sessions, request, &session, &error))
		fail_msg("%s", error.message);
	session_exercise(recorder, session,
			 request->kind == PROBE_ONCPU ? 0 : rotations * SWITCHES_OF_ROTATION, &sums,
			 &stats);
	assert_true(stats.counts.filtered > 0);
	check(&sums, &stats);
	assert_int_equal(session_stop(session), 0);
	session_unref(session);
}

static void test_sessions_equal_their_counters(void **state)
{
	char sleeping[] = "S";
	const char *states[] = { sleeping };
	const struct wire_filter filter = {
		.user_threads = 1,
		.min_block_ns = 20 * NS_PER_US,
		.max_block_ns = NS_PER_S,
		.states = { states, 1 },
	};
	const struct wire_filter some = {
		.comm = "sched-*",
		.min_block_ns = WIRE_ABSENT,
		.max_block_ns = WIRE_ABSENT,
	};
	const struct session_request waits = { .kind = PROBE_OFFCPU, .filter = &filter };
	const struct session_request wakes = { .kind = PROBE_OFFWAKE, .filter = &filter };
	const struct session_request samples = {
		.kind = PROBE_ONCPU,
		.filter = &some,
		.frequency_hz = 997,
	};

	session_filter_check(*state, &waits, check_waits);
	session_filter_check(*state, &samples, check_samples);
	session_filter_check(*state, &wakes, check_wakes);
}

/*
 * A window has the greatest limit that it or the window before had in any part of it: a wait that
 * is picked before a cut may be recorded after it.
 */
static void test_limits_change_within_windows(void **state)
{
	struct recorder *recorder = *state;
	struct session *session = sessions_always(recorder->sessions, PROBE_OFFCPU);
	const int64_t was = (int64_t)sample_below_ns,
		      expected[] = { NS_PER_MS, NS_PER_MS, NS_PER_MS, NS_PER_MS, was };
	struct history_list list;
	size_t i;

	cut_and_wait(recorder, session);
	probe_set_sample_below(session->probe, NS_PER_MS);
	cut_and_wait(recorder, session);
	cut_and_wait(recorder, session);
	probe_set_sample_below(session->probe, sample_below_ns);
	cut_and_wait(recorder, session);
	cut_and_wait(recorder, session);
	cut_and_wait(recorder, session);
	assert_int_equal(history_range(recorder->history, session_info(session)->id, INT64_MIN,
				       INT64_MAX, &list),
			 0);
	assert_true(list.n > ARRAY_SIZE(expected));
	for (i = 0; i < ARRAY_SIZE(expected); i++)
		assert_int_equal(list.windows[list.n - ARRAY_SIZE(expected) + i]->sample_below_ns,
				 expected[i]);
	history_list_fini(&list);
}

/* iolat records system calls by stack only where its brakes are tested. */
static struct config *config_of(const char *min_wait, const char *hook, const char *below)
{
	static const struct config_paths none;
	struct config_error error;
	struct config *config;
	char wait[64], way[64], sample[64];
	char *overrides[] = {
		wait,
		way,
		sample,
		"window.length=10min",
		"window.keep=1h",
		"window.max_memory=1G",
		"probe.oncpu.frequency=499",
		"probe.offwake.enabled=yes",
		"probe.offwake.max_keys=32768",
		"control.max_sessions=2",
		"budget.cpu=off",
		"probe.iolat.slow=1ns",
		"store.enabled=no",
		brake_share ? "probe.iolat.top=syscall" : "probe.iolat.top=fs",
	};

	snprintf(wait, sizeof(wait), "probe.offcpu.min_wait=%s", min_wait);
	snprintf(way, sizeof(way), "probe.offcpu.hook=%s", hook);
	snprintf(sample, sizeof(sample), "probe.offcpu.sample_below=%s", below);
	if (!config_load_from(&none, overrides, ARRAY_SIZE(overrides), &config, &error))
		return config;
	fprintf(stderr, "%s\n", error.text);
	return NULL;
}

/* Runs all tests with this min_wait, hook and sample_below. */
static int run(const char *min_wait, const char *hook, const char *below)
{
	_cleanup_(config_freep) struct config *config = config_of(min_wait, hook, below);
	struct recorder recorder = {};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_sums_equal_the_counter, &recorder),
		cmocka_unit_test_prestate(test_samples_equal_the_counter, &recorder),
		cmocka_unit_test_prestate(test_wakes_equal_the_counter, &recorder),
		cmocka_unit_test_prestate(test_sessions_equal_their_counters, &recorder),
		cmocka_unit_test_prestate(test_limits_change_within_windows, &recorder),
	};
	const struct CMUnitTest brakes[] = {
		cmocka_unit_test_prestate(test_brakes_bound_walks, &recorder),
		cmocka_unit_test_prestate(test_brakes_bound_wakes, &recorder),
		cmocka_unit_test_prestate(test_brakes_bound_operations, &recorder),
	};
	char reason[256] = "";
	int r;

	if (!config)
		return EXIT_FAILURE;
	config->offwake_min_wait_ns = config->offcpu_min_wait_ns;
	config->offwake_sample_below_ns = config->offcpu_sample_below_ns;
	config->window_min_length_ns = 0;
	sample_below_ns = (uint64_t)config->offcpu_sample_below_ns;
	r = recorder_start(config, &recorder, reason, sizeof(reason));
	if (r || !session_is_on(sessions_always(recorder.sessions, PROBE_OFFCPU))) {
		fprintf(stderr, "skipped: %s\n", reason[0] ? reason : "the probe is off");
		recorder_stop(&recorder);
		return EXIT_SKIP;
	}
	r = brake_share ? cmocka_run_group_tests_name("brakes", brakes, NULL, NULL)
			: cmocka_run_group_tests_name(hook, tests, NULL, NULL);
	recorder_stop(&recorder);
	return r;
}

/* The ways in which all tests are run: with every wait's stacks, with none, or with some. */
static const struct way {
	const char *min_wait, *hook, *sample_below;
	bool is_braked; /* the tests of brakes are run */
	bool is_swinging;
} ways[] = {
	{ "0us", "auto", "0", true, false },	  { "100us", "auto", "0", false, false },
	{ "0us", "auto", "0", false, false },	  { "20us", "auto", "300us", false, false },
	{ "20us", "auto", "300us", false, true }, { "0us", "switch_out", "0", false, false },
};

/* True if no way was named, or this one was, by its index in ways[]. */
static bool is_wanted(int argc, char **argv, size_t way)
{
	for (int k = 1; k < argc; k++)
		if ((size_t)atoi(argv[k]) == way)
			return true;
	return argc == 1;
}

/*
 * Runs all tests in all ways, or in those that are named. In an emulated machine that takes a
 * quarter of an hour: there are the environment variables ROTATIONS and HALF, 0 or 1, with which
 * only every other way is taken.
 */
int main(int argc, char **argv)
{
	const char *wanted = getenv("ROTATIONS"), *half = getenv("HALF");
	size_t i, n = 0;
	int r = 0;

	log_setup(LOG_TARGET_STDERR, LOG_WARNING);
	if (wanted)
		rotations = (size_t)atoi(wanted);
	for (i = 0; i < ARRAY_SIZE(ways) && !r; i++) {
		if (!is_wanted(argc, argv, i) ||
		    (half && !ways[i].is_braked && i % 2 != (size_t)atoi(half)))
			continue;
		brake_share = ways[i].is_braked ? BRAKE_SHARE_ALL / 100 : 0;
		is_swinging = ways[i].is_swinging;
		r = run(ways[i].min_wait, ways[i].hook, ways[i].sample_below);
		n++;
	}
	if (n > 0)
		return r;
	fprintf(stderr, "there is no such way\n");
	return EXIT_FAILURE;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests the answers that are not about waits alone: wakers, overview, calls, I/O, sessions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/render/folded.h"
#include "client/render/formats.h"
#include "client/render/iolat.h"
#include "client/render/render.h"
#include "client/render/sparkline.h"
#include "client/render/spawns.h"
#include "client/render/status.h"
#include "common/base.h"

#define T0 (INT64_C(1772334610) * NS_PER_S) /* 2026-03-01 03:10:10 UTC */

#define LIST(a)                  \
	{                        \
		a, ARRAY_SIZE(a) \
	}

static const struct wire_frame target_kernel_frames[] = {
	{ .kind = "kernel", .name = "schedule", .offset = WIRE_ABSENT },
	{ .kind = "kernel", .name = "anon_pipe_read", .offset = WIRE_ABSENT },
};
static const struct wire_frame target_user_frames[] = {
	{ .kind = "native", .name = "wait_for_pipe", .offset = WIRE_ABSENT, .module = "/bin/db" },
	{ .kind = "native", .name = "main", .offset = WIRE_ABSENT, .module = "/bin/db" },
};
static const struct wire_frame waker_kernel_frames[] = {
	{ .kind = "kernel", .name = "try_to_wake_up", .offset = WIRE_ABSENT },
	{ .kind = "kernel", .name = "anon_pipe_write", .offset = WIRE_ABSENT },
};
static const struct wire_frame waker_user_frames[] = {
	{ .kind = "native", .name = "wake_by_pipe", .offset = WIRE_ABSENT, .module = "/bin/jbd" },
	{ .kind = "native", .name = "start", .offset = WIRE_ABSENT, .module = "/bin/jbd" },
};

static const struct wire_stack target_kernel = {
	"a1", LIST(target_kernel_frames), { 0 }, WIRE_ABSENT
};
static const struct wire_stack target_user = { "b1", LIST(target_user_frames), { 0 }, WIRE_ABSENT };
static const struct wire_stack waker_kernel = {
	"c1", LIST(waker_kernel_frames), { 0 }, WIRE_ABSENT
};
static const struct wire_stack waker_user = { "d1", LIST(waker_user_frames), { 0 }, WIRE_ABSENT };

static const struct wire_link path[] = {
	{ "task", 412, 413, "jbd2\x1b" },
	{ "task", 77, 77, "link1" },
	{ "irq", WIRE_ABSENT, WIRE_ABSENT, NULL },
};
static const struct wire_waker waker = { LIST(path), &waker_kernel, &waker_user };

static struct wire_row row_of_db(void)
{
	return (struct wire_row){
		.process = { .pid = 4242, .start = T0, .comm = "db" },
		.tid = WIRE_ABSENT,
		.comm = "db",
		.state = "S",
		.state_bits = 1,
		.reason = "pipe-read",
		.count = 10,
		.total_ns = 3 * NS_PER_S,
		.blocked_ns = 3 * NS_PER_S,
		.max_ns = 2 * NS_PER_S,
		.max_end = T0 + NS_PER_S,
		.max_tid = 4250,
		.max_comm = "io",
		.kernel = &target_kernel,
		.user = &target_user,
	};
}

static struct wire_snapshot_reply reply_of(const char *probe, const struct wire_row *rows, size_t n)
{
	const struct wire_range range = { T0, T0 + 30 * NS_PER_S };

	return (struct wire_snapshot_reply){
		.probe = probe,
		.hook = "tp_btf/h",
		.min_wait_ns = NS_PER_US,
		.coverage = { .asked = range,
			      .used = range,
			      .used_ns = WIRE_ABSENT,
			      .asked_ns = 30 * NS_PER_S,
			      .covered_ns = 30 * NS_PER_S,
			      .windows = 6,
			      .complete = true },
		.totals = { .samples = WIRE_ABSENT,
			    .calls = WIRE_ABSENT,
			    .processes = 1,
			    .threads = 2,
			    .on_cpu_ns = 4 * NS_PER_S,
			    .runnable_ns = NS_PER_S,
			    .blocked_ns = 3 * NS_PER_S,
			    .waits = 11,
			    .cpus = 2 },
		.shown = { (int64_t)n, 2, 4 * NS_PER_S },
		.rows = { rows, n },
	};
}

struct printer {
	struct view view;
	char *text;
	size_t size;
};

static void printer_open(struct printer *p, struct view view)
{
	p->view = view;
	p->view.page.out = open_memstream(&p->text, &p->size);
	assert_non_null(p->view.page.out);
	p->view.page.width = 80;
}

/* Checks that the text has these words in this order, up to NULL, and frees it. */
static void printer_check(struct printer *p, ...)
{
	const char *at, *word;
	va_list ap;

	assert_int_equal(fclose(p->view.page.out), 0);
	at = p->text;
	va_start(ap, p);
	while ((word = va_arg(ap, const char *)) != NULL) {
		const char *found = strstr(at, word);

		if (!found)
			fail_msg("no \"%s\" after the first %td bytes of:\n%s", word, at - p->text,
				 p->text);
		at = found + strlen(word);
	}
	va_end(ap);
	free(p->text);
}

static void printer_check_whole(struct printer *p, const char *text)
{
	assert_int_equal(fclose(p->view.page.out), 0);
	assert_string_equal(p->text, text);
	free(p->text);
}

/* The waker's stack is printed root first, with its names escaped. */
static void test_waker(void **state)
{
	struct wire_row row = row_of_db();
	struct printer p;

	row.waker = &waker;
	printer_open(&p, (struct view){ 0 });
	render_waker(&p.view, &row);
	printer_check_whole(&p, "    waker: jbd2\\x1b (thread 413, pid 412)\n"
				"      start\n"
				"      wake_by_pipe\n"
				"      anon_pipe_write\n"
				"      try_to_wake_up\n"
				"      --               --\n");
	printer_open(&p, (struct view){ .delimited = true });
	render_waker(&p.view, &row);
	printer_check(&p, "wake_by_pipe\n      -\n      anon_pipe_write", NULL);
	row.waker = NULL;
	printer_open(&p, (struct view){ .chain = true });
	render_waker(&p.view, &row);
	render_chain(&p.view, &row);
	printer_check_whole(&p, "");
}

/* A waker that is no task is named by its context, and has the stacks that are known. */
static void test_waker_without_a_task(void **state)
{
	static const struct wire_waker by_irq = { { path + 2, 1 }, &waker_kernel, NULL };
	static const struct wire_waker by_nobody = { { 0 }, NULL, NULL };
	struct wire_row row = row_of_db();
	struct printer p;
	char *title;

	row.waker = &by_irq;
	printer_open(&p, (struct view){ .delimited = true });
	render_waker(&p.view, &row);
	printer_check_whole(&p, "    waker: irq\n"
				"      anon_pipe_write\n"
				"      try_to_wake_up\n"
				"      --               --\n");
	title = waker_title(&by_nobody);
	assert_string_equal(title, "unknown");
	free(title);
}

static void test_chain(void **state)
{
	struct wire_row row = row_of_db();
	struct printer p;

	row.waker = &waker;
	row.comm = "db\n";
	printer_open(&p, (struct view){ .chain = true });
	render_chain(&p.view, &row);
	printer_check_whole(
		&p,
		"    db\\n waits <- jbd2\\x1b (thread 413, pid 412) woke it <- link1 (pid 77) <-\n"
		"    irq\n");
}

static void test_wakes(void **state)
{
	struct wire_row row = row_of_db();
	struct wire_snapshot_reply reply = reply_of("offwake", &row, 1);
	struct printer p;

	row.waker = &waker;
	printer_open(&p, (struct view){ .chain = true });
	render_text(&p.view, &reply);
	printer_check(&p, "totals     2 threads: 11 waits, blocked 3.00s, runnable 1.00s\n",
		      "db (pid 4242)", "S waits for", "10 waits, 3 s in all", "db waits <- jbd2",
		      "waker: jbd2", "try_to_wake_up\n", "--               --\n",
		      "anon_pipe_read\n", "wait_for_pipe", NULL);
	/* The target's stack root first, then the waker's leaf first, and only the last waker. */
	printer_open(&p, (struct view){ .delimited = true });
	render_folded(&p.view, &reply);
	printer_check_whole(&p, "db;main;wait_for_pipe;-;anon_pipe_read;schedule;--;try_to_wake_up;"
				"anon_pipe_write;-;wake_by_pipe;start;jbd2\\x1b 3000000\n");
	printer_open(&p, (struct view){ .chain = true });
	render_folded(&p.view, &reply);
	printer_check(&p, "start;jbd2\\x1b;link1;irq 3000000\n", NULL);
}

/*
 * Makes an answer about waits, with a row that was blocked and one that was ready and throttled,
 * and an answer about samples of the same time.
 */
struct overview_fixture {
	struct wire_row rows[2];
	struct wire_row sample;
	struct wire_snapshot_reply waits, samples;
};

static void overview_init(struct overview_fixture *o)
{
	o->rows[0] = o->rows[1] = o->sample = row_of_db();
	o->rows[1].comm = "worker";
	o->rows[1].blocked_ns = 0;
	o->rows[1].runnable_ns = NS_PER_S;
	o->rows[1].throttled_ns = 400 * NS_PER_MS;
	o->rows[1].kernel = NULL;
	o->rows[1].reason = NULL;
	o->waits = reply_of("offcpu", o->rows, 2);
	o->sample.state = NULL;
	o->sample.total_ns = 4 * NS_PER_S;
	o->samples = reply_of("oncpu", &o->sample, 1);
	o->samples.totals.samples = 200;
}

static void overview_text(const struct view *view, const struct wire_snapshot_reply *waits,
			  const struct wire_snapshot_reply *samples, const char *no_samples)
{
	const struct overview overview = {
		.waits = waits,
		.samples = samples,
		.no_samples = no_samples,
		.no_io = "off",
	};

	render_overview(view, &overview);
}

static void test_overview(void **state)
{
	struct overview_fixture o;
	struct printer p;

	overview_init(&o);
	printer_open(&p, (struct view){ .top = 5 });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "\non CPU     4 s by samples, 1 of 1 stack\n", "db (pid 4242)",
		      "4 s  100 %\n", "\nrunnable   600 ms, 1 of 1 stack\n", "worker",
		      "\n  ready for a CPU; before: S sleeping\n", "\nthrottled  400 ms,",
		      "\n  ready, without CPU quota; before: S sleeping\n",
		      "\nblocked    3 s, 1 of 1 stack\n", "db (pid 4242)", "\n  S waits for",
		      "more: stackctl snapshot offcpu", NULL);
	o.rows[1].state = "R";
	printer_open(&p, (struct view){ .top = 5 });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "\nrunnable   600 ms, 1 of 1 stack\n", "\n  R ", NULL);
	o.waits.rows.n = 0;
	o.samples.rows.n = 0;
	printer_open(&p, (struct view){ .top = 5 });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "\non CPU     no samples\n", "\nrunnable   nobody waited for a CPU\n",
		      "\nblocked    no waits but idle ones\n", NULL);
	/* There is no answer about samples if no sample found the process. */
	printer_open(&p, (struct view){ .top = 5 });
	overview_text(&p.view, &o.waits, NULL, NULL);
	printer_check(&p, "\non CPU     no samples\n", "\nrunnable   nobody waited", NULL);
}

/* However narrow the page, the overview says which lock it is and who holds it. */
static void test_overview_widths(void **state)
{
	static const struct {
		size_t width;
		const char *object, *holder;
	} cases[] = {
		{ 80, "S flock pg.lock", "by postgres(1234)" },
		{ 100, "pg.lock", "by postgres(1234)" },
		{ 132, "pg.lock", "longest held by postgres(1234)" },
	};
	struct wire_holder holder = { .pid = 1234, .tid = WIRE_ABSENT, .comm = "postgres" };
	struct overview_fixture o;
	struct overview overview = { .waits = &o.waits, .no_io = "off" };
	struct printer p;

	overview_init(&o);
	for (size_t i = 0; i < ARRAY_SIZE(o.rows); i++) {
		o.rows[i].object = "/var/lib/postgresql/15/main/base/16384/a/b/c/d/pg.lock";
		o.rows[i].reason = "flock";
		o.rows[i].holders = (struct wire_holders){ &holder, 1 };
	}
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		printer_open(&p, (struct view){ .top = 5, .has_lines = true });
		p.view.page.width = cases[i].width;
		p.view.page.cuts_names = true;
		render_overview(&p.view, &overview);
		printer_check(&p, "\n  blocked ", cases[i].object, cases[i].holder, NULL);
	}
}

/* What the budget cut off is no sign that a process used no CPU, or did no I/O. */
static void test_overview_of_shed(void **state)
{
	struct wire_shed sheds[] = { { .name = "calls", .length_ns = NS_PER_S } };
	struct wire_cost cost = { .length_ns = NS_PER_S, .shed = { sheds, 1 } };
	struct overview_fixture o;
	struct overview overview = { .waits = &o.waits };
	struct printer p;

	overview_init(&o);
	o.waits.cost = &cost;
	printer_open(&p, (struct view){ .top = 5 });
	render_overview(&p.view, &overview);
	printer_check(&p, "\non CPU     no samples\n",
		      "I/O        not known: I/O calls were not recorded, to keep [budget] cpu\n",
		      NULL);
	sheds[0].name = "samples";
	printer_open(&p, (struct view){ .top = 5 });
	render_overview(&p.view, &overview);
	printer_check(&p, "\non CPU     no samples: most were not recorded, to keep [budget] cpu\n",
		      "I/O        none\n", NULL);
	printer_open(&p, (struct view){ .top = 5, .has_lines = true });
	render_overview(&p.view, &overview);
	printer_check(&p, "\non CPU     no samples: most were not recorded, to keep [budget] cpu\n",
		      "I/O        none\n", NULL);
	/* What stackd never sees here is not left out to keep the budget. */
	sheds[0].name = "calls";
	overview.above = "I/O above block (fentry is refused): stackctl record iolat";
	printer_open(&p, (struct view){ .top = 5, .has_lines = true });
	render_overview(&p.view, &overview);
	printer_check(&p,
		      "I/O        not known: I/O above block (fentry is refused): stackctl record "
		      "iolat\n",
		      NULL);
	overview.above = "I/O above fs ([probe.iolat] top): stackctl record iolat";
	printer_open(&p, (struct view){ .top = 5, .has_lines = true });
	render_overview(&p.view, &overview);
	printer_check(&p, "I/O calls were not recorded, to keep [budget] cpu\n", NULL);
	cost.shed.n = 0;
	printer_open(&p, (struct view){ .top = 5, .has_lines = true });
	render_overview(&p.view, &overview);
	printer_check(&p, "I/O        not known: I/O above fs ([probe.iolat] top): ", NULL);
	cost.shed.n = 1;
	overview.no_io = "off";
	printer_open(&p, (struct view){ .top = 5, .has_lines = true });
	render_overview(&p.view, &overview);
	printer_check(&p, "I/O        not known: off\n", NULL);
}

static void check_sparkline(const int64_t *ns, const int64_t *covered_ns, size_t n,
			    const char *ascii, const char *utf8)
{
	char *text = sparkline(ns, covered_ns, n, false);

	assert_string_equal(text, ascii);
	free(text);
	text = sparkline(ns, covered_ns, n, true);
	assert_string_equal(text, utf8);
	free(text);
}

/* A slot is as high as its time is, of what is covered, compared with the highest. */
static void test_sparkline(void **state)
{
	static const int64_t ns[] = { 0, 1, 50, 100, 100 }, even[] = { 100, 100, 100, 100, 100 };
	static const int64_t uneven[] = { 100, 100, 0, 200, 100 }, none[5] = { 0 };
	int64_t many[100], covered[100];
	char text[101];

	check_sparkline(ns, even, 5, " .+@@", " \u2581\u2585\u2588\u2588");
	check_sparkline(ns, uneven, 5, " .?+@", " \u2581\u00b7\u2585\u2588");
	check_sparkline(none, even, 5, "     ", "     ");
	check_sparkline(ns, none, 5, "?????", "\u00b7\u00b7\u00b7\u00b7\u00b7");
	check_sparkline(ns, even, 0, "", "");
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = covered[i] = INT64_MAX;
	memset(text, '@', SPARKLINE_MAX);
	text[SPARKLINE_MAX] = '\0';
	char *line = sparkline(many, covered, ARRAY_SIZE(many), false);

	assert_string_equal(line, text);
	free(line);
}

/* The overview as lines: the urgent row first, stackd's own time apart, and what nothing is known
 * of. */
static void test_overview_lines(void **state)
{
	static const struct wire_gap gaps[] = { { T0, T0 + NS_PER_S, "off\x1b", NULL },
						{ T0, T0 + 2 * NS_PER_S, "stackd was killed",
						  NULL } };
	static const struct wire_lost lost[] = { { "stacks", 0 },
						 { "rows\x1b", 141579 },
						 { "waits", 1 } };
	struct overview_fixture o;
	struct printer p;

	overview_init(&o);
	o.rows[1].urgent = 1;
	o.rows[1].blocked_ns = 1;
	printer_open(&p, (struct view){ .top = 4, .has_lines = true });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "time ", "UTC: 30 s covered, lost nothing\nCPUs ", " busy, ",
		      " ready; pressure not known\n", "blocked ", "waits for", "worker", "db(4242)",
		      "on CPU 4.00s", "runnable", "before that", "worker", "throttled",
		      "\nI/O        not known: off\n", "more       stackctl stuck", NULL);
	o.rows[1].urgent = 0;
	o.rows[0].own = 1;
	o.waits.coverage.gaps = (struct wire_gaps)LIST(gaps);
	o.waits.coverage.covered_ns -= 3 * NS_PER_S;
	o.samples.lost = (struct wire_losts)LIST(lost);
	printer_open(&p, (struct view){ .top = 4, .has_lines = true });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "UTC: 27 s of 30 s covered\ngap        2 s from ",
		      ", and 1 more: stackd was killed\n",
		      "lost       samples: 141,580: rows\\x1b and other reasons (-v)\nCPUs ",
		      "on CPU", "runnable", "hidden     stackd: 0ns on CPU, 3.00s waiting\n", NULL);
	printer_open(&p, (struct view){ .top = 4, .has_lines = true });
	overview_text(&p.view, &o.waits, NULL, "by\x1b [probes]");
	printer_check(&p, "runnable", "\non CPU     no samples: by\\x1b [probes]\n", NULL);
}

static void test_pressure(void **state)
{
	static const struct wire_stall cpu = { .some_ppm = 123000 };
	static const struct wire_stall io = { .some_ppm = 400000, .full_ppm = 306000 };
	static const struct wire_stall none = {}, little = { .some_ppm = 1200 };
	static const struct wire_unit_pressure units[] = {
		{ .cgroup = "/system.slice/db\x1b.service", .io = { .some_ppm = 380000 } },
		{ .cgroup = "/system.slice/low.service", .cpu = { .some_ppm = 9999 } },
	};
	struct wire_pressure pressure = { .cpu = &cpu, .io = &io, .memory = &none };
	struct overview_fixture o;
	struct printer p;

	overview_init(&o);
	o.waits.pressure = &pressure;
	printer_open(&p, (struct view){ .verbose = true, .top = 5 });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "\npressure   cpu 12 %, io 40 % (full 31 %), memory 0 %\n", NULL);
	pressure.units = (struct wire_unit_pressures)LIST(units);
	pressure.memory = &little;
	printer_open(&p, (struct view){ .verbose = true, .top = 5 });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p,
		      "\npressure   cpu 12 %, io 40 % (full 31 %), memory 0.1 %; most: "
		      "db\\x1b.service io\n           38 %\n",
		      NULL);
	pressure.units = (struct wire_unit_pressures){};
	pressure.units_missing = "no cgroups\x1b";
	printer_open(&p, (struct view){ .verbose = true, .top = 5 });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "\n           of units not known: no cgroups\\x1b\n", NULL);
	pressure = (struct wire_pressure){ .missing = "no PSI" };
	printer_open(&p, (struct view){ .verbose = true, .top = 5 });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "\npressure   not known: no PSI\n", NULL);
}

/* The overview has one line about short-lived processes; --by parent has a table of all. */
static void test_spawns(void **state)
{
	static const struct wire_spawn_row rows[] = {
		{ "make", "cc1plus", { 0, 3900, 3900, 3900, 11 * NS_PER_S, 156 * NS_PER_S } },
		{ "sh", "sh", { 900, 0, 600, 600, NS_PER_S, NS_PER_S } },
		{ "make", "make", { 4211, 0, 2, 2, 0, 0 } },
		{ "make", "as\x1b", { 0, 311, 311, 311, NS_PER_S, NS_PER_S } },
		{ "init", "db", { 0, 0, 1, 0, 0, 0 } },
	};
	struct wire_spawns spawns = {
		.length_ns = 30 * NS_PER_S,
		.total = { 5200, 4211, 4900, 4811, 13 * NS_PER_S, 158 * NS_PER_S },
		.rows = LIST(rows),
		.others = { .exits = 88 },
		.rows_folded = 9,
	};
	static const char line[] = "\nprocesses  4,811 short-lived, 13.0s of CPU, life 32.8ms; "
				   "4,213 by make: cc1plus, as\\x1b\n";
	static const char *const comms[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };
	static const char *const parents[] = { "cron", "sh", "make" };
	struct wire_spawn_row many[ARRAY_SIZE(comms)];
	struct overview_fixture o;
	struct printer p;
	size_t lines = 0;

	overview_init(&o);
	o.waits.spawns = &spawns;
	printer_open(&p, (struct view){ .top = 4, .has_lines = true });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "CPUs ", line, NULL);
	printer_open(&p, (struct view){ .top = 5 });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "\nprocesses  4,811 short-lived", NULL);
	printer_open(&p, (struct view){ .by = "parent" });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "forks", "execs", "ended", "short-lived", "CPU", "average", "process",
		      "5,200", "4,211", "4,900", "4,811", "13.0s", "32.8ms", "all\n", "4,211",
		      "12.0s", "  make\n", "cc1plus\n", "as\\x1b\n", "  sh\n", "  init\n", "db\n",
		      "88", "(others)\n", NULL);
	printer_open(&p, (struct view){ .by = "parent", .top = 1 });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "  make\n", "as\\x1b\n", "(others)\n2 more: -n 0 shows all\n", NULL);

	/* On a screen, children and parents that are too many are summed up, or counted. */
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = (struct wire_spawn_row){ i < 6 ? "bash" : parents[i - 6],
						   comms[i],
						   { .exits = 9, .short_lived = 9 } };
	spawns.rows = (struct wire_spawn_rows)LIST(many);
	printer_open(&p, (struct view){ .by = "parent", .height = 14 });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	assert_int_equal(fclose(p.view.page.out), 0);
	for (const char *at = p.text; *at; at++)
		lines += *at == '\n';
	assert_int_equal(lines, 14);
	free(p.text);
	printer_open(&p, (struct view){ .by = "parent", .top = 1, .top_is_given = true });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "  a\n", "  b\n", " 36 ", "  and 4 more\n", "(others)\n",
		      "3 more: -n 0 shows all\n", NULL);
	printer_open(&p, (struct view){ .by = "parent", .top_is_given = true });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "  f\n", NULL);

	/* Nobody was short-lived; and nothing is known of them. */
	spawns.total.short_lived = 0;
	assert_null(spawns_line(&spawns));
	assert_null(spawns_line(NULL));
	o.waits.spawns = NULL;
	printer_open(&p, (struct view){ .by = "parent" });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "\nnot known: a filter was given", NULL);
}

/* The head of a range by parts says how much of the range they cover. */
static void test_slices_head(void **state)
{
	static const struct wire_lost lost[] = { { "one", 2 }, { "two", 3 } };
	struct wire_row row = row_of_db();
	struct wire_snapshot_reply first = reply_of("offcpu", &row, 1), second = first;
	const struct wire_snapshot_reply *const slices[] = { &first, &second };
	struct printer p;

	second.coverage.asked.start = second.coverage.used.start = T0 + 30 * NS_PER_S;
	second.coverage.asked.end = second.coverage.used.end = T0 + 60 * NS_PER_S;
	printer_open(&p, (struct view){ .top = 1 });
	render_slices(&p.view, slices, 2);
	printer_check(&p, "UTC: 60 s covered, lost nothing\nfigures ", NULL);
	first.lost = (struct wire_losts){ lost, 1 };
	second.lost = (struct wire_losts)LIST(lost);
	second.coverage.covered_ns = second.coverage.used_ns = 15 * NS_PER_S;
	printer_open(&p, (struct view){ .top = 1 });
	render_slices(&p.view, slices, 2);
	printer_check(&p, "UTC: 45 s of 60 s covered\nlost       7: one and other reasons (-v)\n",
		      NULL);
	/* Windows reach beyond the range: the sums are about more than the covered part of it. */
	second.coverage.used_ns = 20 * NS_PER_S;
	printer_open(&p, (struct view){ .top = 1 });
	render_slices(&p.view, slices, 2);
	printer_check(&p, "UTC: 50 s covered, not all of 60 s\n", NULL);
	second.coverage.used_ns = 35 * NS_PER_S;
	printer_open(&p, (struct view){ .top = 1 });
	render_slices(&p.view, slices, 2);
	printer_check(&p, "UTC: 65 s covered\n", NULL);
}

/* An answer of another probe that covers less than the first one says so, also without a gap. */
static void test_overview_of_less(void **state)
{
	struct overview_fixture o;
	struct printer p;

	overview_init(&o);
	o.samples.coverage.covered_ns = o.waits.coverage.covered_ns - 2 * NS_PER_S;
	printer_open(&p, (struct view){ .top = 5, .has_lines = true });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p, "gap        samples: only 28 s covered\n", NULL);
}

/* Losses of samples are printed apart from those of waits; a note of both is printed once. */
static void test_overview_of_lost_samples(void **state)
{
	static const struct wire_gap gaps[] = { { T0, T0 + NS_PER_S, "stackd was killed", NULL },
						{ T0, T0 + 2 * NS_PER_S, "samples\x1b", NULL } };
	static const struct wire_lost lost[] = { { "stacks", 0 }, { "rows\x1b", 141579 } };
	static const char *const notes[] = { "of both", "of samples" };
	struct overview_fixture o;
	struct printer p;

	overview_init(&o);
	o.waits.coverage.gaps = (struct wire_gaps){ gaps, 1 };
	o.waits.notes = (struct wire_strs){ notes, 1 };
	o.samples.coverage.gaps = (struct wire_gaps)LIST(gaps);
	o.samples.lost = (struct wire_losts)LIST(lost);
	o.samples.notes = (struct wire_strs)LIST(notes);
	printer_open(&p, (struct view){ .verbose = true, .top = 5 });
	overview_text(&p.view, &o.waits, &o.samples, NULL);
	printer_check(&p,
		      "stackd was killed\nlost       nothing\nnote       of both\n"
		      "samples    gap, 03:10:10 to 03:10:12 (2 s): samples\\x1b\n"
		      "samples    lost, rows\\x1b: 141,579\n"
		      "samples    of samples\n"
		      "seen ",
		      NULL);
	printer_open(&p, (struct view){ .verbose = true, .top = 5 });
	overview_text(&p.view, &o.waits, NULL, "the probe oncpu is off: by\x1b [probes]");
	printer_check(&p, "\non CPU     no samples: the probe oncpu is off: by\\x1b [probes]\n",
		      "\nrunnable   600 ms,", NULL);
}

static void overview_folded(const struct view *view, const struct wire_snapshot_reply *waits,
			    const struct wire_snapshot_reply *samples)
{
	void *stream = format_folded.stream_new(view, STREAM_OVERVIEW);

	format_folded.stream_add(stream, waits, true);
	if (samples)
		format_folded.stream_add(stream, samples, true);
	format_folded.stream_end(stream, true);
}

/* There is a tower for each part of the time, and the towers add up to the sums. */
static void test_overview_folded(void **state)
{
	static const char waits[] =
		"runnable;worker;main;wait_for_pipe 600000\n"
		"throttled;worker;main;wait_for_pipe 400000\n"
		"blocked;db;main;wait_for_pipe;anon_pipe_read;schedule 3000000\n";
	struct overview_fixture o;
	struct printer p;
	char text[512];

	overview_init(&o);
	printer_open(&p, (struct view){ 0 });
	overview_folded(&p.view, &o.waits, &o.samples);
	snprintf(text, sizeof text,
		 "on CPU;db;main;wait_for_pipe;anon_pipe_read;schedule 4000000\n%s", waits);
	printer_check_whole(&p, text);
	/* Without samples, the time on CPUs is still known, without stacks. */
	printer_open(&p, (struct view){ 0 });
	overview_folded(&p.view, &o.waits, NULL);
	snprintf(text, sizeof text, "on CPU;[no samples] 4000000\n%s", waits);
	printer_check_whole(&p, text);
}

static void test_calls(void **state)
{
	struct wire_row row = row_of_db();
	struct wire_snapshot_reply reply = reply_of("stackcount", &row, 1);
	struct printer p;

	row.state = NULL;
	row.total_ns = 0;
	reply.totals.calls = 40;
	reply.rest = (struct wire_rest){ .rows = 3, .threads = 1 };
	printer_open(&p, (struct view){ 0 });
	render_text(&p.view, &reply);
	printer_check(&p, "calls      40 by 1 process, 1 a second, by tp_btf/h\n", "db (pid 4242)",
		      "10 calls   25 %\n", "schedule\n", "3 more, 75 %: -n 0 shows all\n", NULL);
	printer_open(&p, (struct view){ 0 });
	render_folded(&p.view, &reply);
	printer_check(&p, "schedule 10\n", NULL);
}

static void test_call(void **state)
{
	const struct wire_call call = {
		.time = T0 + 5,
		.comm = "a\033b",
		.pid = 7,
		.tid = 8,
		.cpu = 1,
		.count = 3,
		.user = &target_user,
	};
	struct printer p;

	printer_open(&p, (struct view){ 0 });
	render_call(&p.view, &call);
	printer_check(&p, "03:10:10.000000005  a\\x1bb (pid 7, thread 8, CPU 1)", "for 3 calls\n",
		      "wait_for_pipe", NULL);
}

static struct wire_io io_of(const char *layer, const char *op, int64_t own_ns)
{
	return (struct wire_io){
		.layer = layer,
		.op = op,
		.filesystem = "ext4",
		.device = "vda",
		.own_ns = own_ns,
		.cpu_ns = own_ns,
		.device_ns = 2 * NS_PER_S,
		.p50_ns = NS_PER_US,
		.p90_ns = 2 * NS_PER_MS,
		.p99_ns = WIRE_ABSENT,
	};
}

static struct wire_row row_of_io(const struct wire_io *io)
{
	struct wire_row row = row_of_db();

	row.state = NULL;
	row.kernel = row.user = NULL;
	row.io = io;
	return row;
}

static void test_ios(void **state)
{
	static const int64_t counts[] = { 0, 0, 3, 0, 1 };
	struct wire_io ios[] = { io_of("syscall", "fsync", NS_PER_S),
				 io_of("fs", "fsync", 2 * NS_PER_S) };
	struct wire_row rows[] = { row_of_io(&ios[0]), row_of_io(&ios[1]) };
	struct wire_snapshot_reply reply = reply_of("iolat", rows, 2);
	struct printer p;

	ios[0].errors = 2;
	rows[0].buckets = (struct int_list){ counts, ARRAY_SIZE(counts) };
	printer_open(&p, (struct view){ .histograms = true });
	render_text(&p.view, &reply);
	printer_check(
		&p, "syscall\n  fsync     ext4 vda             10    3.00s  1.00us  2.00ms       -",
		"2 failed\n", "nsecs", "         4 -> 7          : 3        |*****",
		"        16 -> 31         : 1        |", "\nfs\n  fsync", NULL);
	printer_open(&p, (struct view){ .breakdown = true });
	render_text(&p.view, &reply);
	printer_check(&p, "sync on ext4 vda", "3 s in all, 300 ms each\n", "10, by layer:\n",
		      "+- syscall", "1 s", "33 %", "+--- fs", "2 s", "67 %", "+- device", NULL);
	printer_open(&p, (struct view){ 0 });
	render_folded(&p.view, &reply);
	printer_check_whole(&p,
			    "syscall;fsync;ext4 vda;db 1000000\nfs;fsync;ext4 vda;db 2000000\n");
}

/* The times of several processes in one layer add up. */
static void test_a_breakdown_of_processes(void **state)
{
	struct wire_io ios[] = { io_of("syscall", "fsync", NS_PER_S),
				 io_of("syscall", "fsync", NS_PER_S),
				 io_of("fs", "fsync", 2 * NS_PER_S) };
	struct wire_row rows[] = { row_of_io(&ios[0]), row_of_io(&ios[1]), row_of_io(&ios[2]) };
	struct wire_snapshot_reply reply = reply_of("iolat", rows, 3);
	struct printer p;

	printer_open(&p, (struct view){ .breakdown = true });
	render_text(&p.view, &reply);
	printer_check(&p, "sync on ext4 vda", "6 s in all, 300 ms each\n", "20, by layer:\n",
		      "+- syscall", "2 s", "33 %", "+--- fs", "2 s", "33 %", "+- on CPU", "2 s",
		      "+- device", "4 s", "67 %", NULL);
}

/* Names of disks are whole if there is room; no line is wider than a terminal. */
static void test_places_of_io_rows(void **state)
{
	struct wire_io ios[] = { io_of("fs", "read", NS_PER_S), io_of("fs", "write", NS_PER_S) };
	struct wire_row rows[] = { row_of_io(&ios[0]), row_of_io(&ios[1]) };
	struct wire_snapshot_reply reply = reply_of("iolat", rows, 2);
	struct printer p;

	ios[0].device = "nvme0n1p2";
	ios[1].filesystem = "éxt4"; /* takes as many columns as ext4, in more bytes */
	for (int is_terminal = 0; is_terminal < 2; is_terminal++) {
		printer_open(&p, (struct view){ .page.cuts_names = is_terminal == 1 });
		render_text(&p.view, &reply);
		printer_check(&p, "\n            on                 count ",
			      "\n  read      ext4 nvme0n1p2        10    3.00s",
			      "\n  write     éxt4 vda              10    3.00s", NULL);
	}
	ios[1].op = "copy_file_range";
	printer_open(&p, (struct view){ .page.cuts_names = true });
	render_text(&p.view, &reply);
	printer_check(
		&p,
		"\n                  on              count    total    p50~    p90~    p99~ longest\n",
		"\n  read            ext4 ...1p2        10    3.00s  1.00us  2.00ms       -   2.00s",
		"\n  copy_file_range éxt4 vda           10    3.00s", NULL);
	printer_open(&p, (struct view){ 0 });
	render_text(&p.view, &reply);
	printer_check(&p, "\n  read            ext4 nvme0n1p2        10    3.00s", NULL);
}

/* A map has a column for a window without operations, and a line for an empty bucket between
 * others. */
static void test_heat(void **state)
{
	static const int64_t both[] = { 0, 0, 3, 0, 1 }, one[] = { 0, 0, 0, 0, 1 };
	struct wire_io io = io_of("syscall", "read", NS_PER_S);
	struct wire_row rows[] = { row_of_io(&io), row_of_io(&io), row_of_io(&io) };
	struct wire_snapshot_reply reply = reply_of("iolat", rows, 3);
	struct printer p;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i].buckets = (struct int_list){ both, ARRAY_SIZE(both) };
	rows[2].buckets = (struct int_list){ one, ARRAY_SIZE(one) };
	rows[0].window = T0;
	rows[1].window = T0 + 5 * NS_PER_S;
	rows[2].window = T0 + 25 * NS_PER_S;
	printer_open(&p, (struct view){ .over_time = true });
	render_text(&p.view, &reply);
	printer_check(&p, "syscall read", "30, 9 s in all, 3 in the darkest\n",
		      "    16ns |..   .|\n", "     8ns |      |\n", "     4ns |@@    |\n",
		      "03:10:10", "03:10:40\n", "a column is 5 s", NULL);
	rows[0].window = rows[1].window = rows[2].window = WIRE_ABSENT;
	printer_open(&p, (struct view){ .over_time = true });
	render_text(&p.view, &reply);
	printer_check(&p, "no operations", NULL);
}

static void test_open_operations(void **state)
{
	struct wire_io io = io_of("fs", "sync", 0);
	struct wire_row row = row_of_io(&io);
	struct wire_snapshot_reply reply = reply_of("iolat", &row, 1);
	struct printer p;

	row.count = row.total_ns = 0;
	io.open = 2;
	io.oldest_ns = 90 * NS_PER_S;
	io.oldest_tid = 77;
	printer_open(&p, (struct view){ 0 });
	render_text(&p.view, &reply);
	printer_check(&p, "2 have not ended; the oldest began ", " ago (thread 77)\n", NULL);
	printer_open(&p, (struct view){ .breakdown = true });
	render_text(&p.view, &reply);
	printer_check(&p, "no operations\n", NULL);
	io = io_of("block", "write", NS_PER_S);
	printer_open(&p, (struct view){ .breakdown = true });
	render_text(&p.view, &reply);
	printer_check(&p, "no operations above the disks were recorded", NULL);
}

/* An answer without I/O says which is not recorded, and what records it. */
static void test_io_above(void **state)
{
	static const char *const notes[] = {
		"not seen: writes by mmap",
		"not seen: I/O above fs ([probe.iolat] top): stackctl record iolat",
	};
	struct wire_snapshot_reply reply = reply_of("iolat", NULL, 0);
	struct printer p;

	reply.notes = (struct wire_strs)LIST(notes);
	printer_open(&p, (struct view){ .has_lines = true });
	render_text(&p.view, &reply);
	printer_check(&p, "\nnot seen   I/O above fs ([probe.iolat] top): stackctl record iolat\n",
		      "\nno operations\n", NULL);
	printer_open(&p, (struct view){ .breakdown = true });
	render_text(&p.view, &reply);
	printer_check(&p, "\nnot seen   I/O above fs ", "\nno operations\n", NULL);
}

static void test_sessions(void **state)
{
	static const int64_t pids[] = { 4242, 4243 };
	static const char *const states[] = { "D", "S" };
	const struct wire_filter filter = {
		.pids = LIST(pids),
		.user_threads = 1,
		.min_block_ns = 500 * NS_PER_US,
		.max_block_ns = WIRE_ABSENT,
		.states = LIST(states),
		.comm = "d*\x1b",
	};
	struct wire_session session = {
		.id = "5",
		.probe = "offwake",
		.name = "slow",
		.owner = "root",
		.since = T0,
		.until = T0 + 60 * NS_PER_S,
		.ended = WIRE_ABSENT,
		.filter = &filter,
	};
	const struct wire_sessions_reply one = { { &session, 1 } }, none = { { 0 } };
	struct printer p;

	printer_open(&p, (struct view){ 0 });
	render_sessions(&p.view.page, &one);
	printer_check(&p, "5         offwake, slow, of root, since 2026-03-01 03:10:10 UTC\n",
		      "only -p 4242,4243 -u -m 500us --state D,S --comm d*\\x1b\n",
		      "ends 2026-03-01 03:11:10 UTC\n", NULL);
	session.ended = T0 + NS_PER_S;
	printer_open(&p, (struct view){ 0 });
	render_sessions(&p.view.page, &one);
	printer_check(&p, "ended 2026-03-01 03:10:11 UTC\n", NULL);
	printer_open(&p, (struct view){ 0 });
	render_sessions(&p.view.page, &none);
	printer_check_whole(&p, "no sessions\n");
}

/* A filter that is typed as it was printed has to select the same. */
static void test_filters_of_sessions(void **state)
{
	const struct wire_filter io = {
		.min_block_ns = 500,
		.max_block_ns = 1500 * NS_PER_MS,
		.layer = "fs",
		.op = "read",
		.disk = "vda\x1b",
	};
	const struct wire_filter nothing = {
		.min_block_ns = 0,
		.max_block_ns = 2 * NS_PER_S,
	};
	struct wire_session sessions[] = {
		{ .id = "5",
		  .probe = "iolat",
		  .owner = "root",
		  .since = T0,
		  .until = WIRE_ABSENT,
		  .ended = WIRE_ABSENT,
		  .filter = &io },
		{ .id = "6",
		  .probe = "stackcount",
		  .owner = "root",
		  .since = T0,
		  .until = WIRE_ABSENT,
		  .ended = WIRE_ABSENT,
		  .filter = &nothing,
		  .function = "^vfs_",
		  .regexp = 1,
		  .functions = 2,
		  .count = 7,
		  .calls_per_s = WIRE_ABSENT,
		  .every = WIRE_ABSENT,
		  .held = WIRE_ABSENT },
	};
	const struct wire_sessions_reply reply = { LIST(sessions) };
	struct printer p;

	printer_open(&p, (struct view){ 0 });
	render_sessions(&p.view.page, &reply);
	printer_check(&p, "only -m 500ns -M 1500ms --layer fs --op read --disk vda\\x1b\n",
		      "only -m 0s -M 2s\n", "          -r ^vfs_: 2 functions, 7 calls\n", NULL);
	sessions[1].functions = WIRE_ABSENT;
	sessions[1].regexp = WIRE_BOOL_ABSENT;
	printer_open(&p, (struct view){ 0 });
	render_sessions(&p.view.page, &reply);
	printer_check(&p, "          ^vfs_\n", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waker),
		cmocka_unit_test(test_waker_without_a_task),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_wakes),
		cmocka_unit_test(test_overview),
		cmocka_unit_test(test_overview_widths),
		cmocka_unit_test(test_overview_of_shed),
		cmocka_unit_test(test_slices_head),
		cmocka_unit_test(test_sparkline),
		cmocka_unit_test(test_overview_lines),
		cmocka_unit_test(test_pressure),
		cmocka_unit_test(test_spawns),
		cmocka_unit_test(test_filters_of_sessions),
		cmocka_unit_test(test_a_breakdown_of_processes),
		cmocka_unit_test(test_places_of_io_rows),
		cmocka_unit_test(test_overview_of_lost_samples),
		cmocka_unit_test(test_overview_of_less),
		cmocka_unit_test(test_overview_folded),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_ios),
		cmocka_unit_test(test_heat),
		cmocka_unit_test(test_open_operations),
		cmocka_unit_test(test_io_above),
		cmocka_unit_test(test_sessions),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}

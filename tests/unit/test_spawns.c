/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts processes that begin and end by name, merges windows of them, and stores them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/store/spawns_section.h"

static void count(struct window_spawns *spawns, const char *parent, const char *comm,
		  struct spawn_sums sums)
{
	window_spawns_count(spawns, parent, comm, &sums);
}

static void assert_sums(struct spawn_sums sums, struct spawn_sums wanted)
{
	assert_memory_equal(&sums, &wanted, sizeof(sums));
}

static void assert_row(const struct window_spawns *spawns, size_t i, const char *parent,
		       const char *comm, struct spawn_sums wanted)
{
	assert_true(i < spawns->n);
	assert_string_equal(spawns->v[i].parent, parent);
	assert_string_equal(spawns->v[i].comm, comm);
	assert_sums(spawns->v[i].sums, wanted);
}

static void test_rows_are_found_by_both_names(void **state)
{
	struct window_spawns spawns = {};
	char full[COMM_LEN], garbage[COMM_LEN] = "as\0garbage";

	/* A name from the kernel ends with a NUL, but may have anything behind it. */
	memset(full, 'x', sizeof(full));
	count(&spawns, "make", "sh", (struct spawn_sums){ .forks = 1 });
	count(&spawns, "make", garbage, (struct spawn_sums){ .execs = 1 });
	count(&spawns, "make", "as", (struct spawn_sums){ .exits = 1, .shorts = 1, .cpu_ns = 3 });
	count(&spawns, "sh", "make", (struct spawn_sums){ .exits = 1 });
	count(&spawns, full, "", (struct spawn_sums){ .forks = 1 });
	assert_int_equal(spawns.n, 4);
	assert_row(&spawns, 0, "make", "as", (struct spawn_sums){ 0, 1, 1, 1, 3, 0 });
	assert_row(&spawns, 1, "make", "sh", (struct spawn_sums){ 1, 0, 0, 0, 0, 0 });
	assert_row(&spawns, 2, "sh", "make", (struct spawn_sums){ 0, 0, 1, 0, 0, 0 });
	assert_row(&spawns, 3, "xxxxxxxxxxxxxxx", "", (struct spawn_sums){ 1, 0, 0, 0, 0, 0 });
	assert_sums(window_spawns_total(&spawns), (struct spawn_sums){ 2, 1, 2, 1, 3, 0 });
	window_spawns_fini(&spawns);
	assert_int_equal(spawns.n, 0);
}

/* The rows with the most events are kept, and nothing is lost. */
static void test_limit(void **state)
{
	struct window_spawns spawns = {};
	struct spawn_sums total;
	char comm[COMM_LEN];
	size_t i;

	for (i = 0; i < 300; i++) {
		snprintf(comm, sizeof(comm), "p%03zu", i);
		count(&spawns, "sh", comm,
		      (struct spawn_sums){ .forks = i % 100, .exits = 1, .cpu_ns = i * i });
	}
	total = window_spawns_total(&spawns);
	/* Events are 1 to 100, each of three rows: 33 numbers are whole, and one row of the next.
	 */
	window_spawns_limit(&spawns, 100);
	assert_int_equal(spawns.n, 100);
	assert_int_equal(spawns.capacity, 100);
	assert_int_equal(spawns.n_others, 200);
	for (i = 0; i < spawns.n; i++)
		assert_true(spawn_events(&spawns.v[i].sums) >= 67);
	assert_row(&spawns, 0, "sh", "p066", (struct spawn_sums){ 66, 0, 1, 0, 66 * 66, 0 });
	assert_row(&spawns, 1, "sh", "p067", (struct spawn_sums){ 67, 0, 1, 0, 67 * 67, 0 });
	for (i = 1; i < spawns.n; i++)
		assert_true(strcmp(spawns.v[i - 1].comm, spawns.v[i].comm) < 0);
	assert_sums(window_spawns_total(&spawns), total);
	window_spawns_limit(&spawns, 100);
	assert_int_equal(spawns.n_others, 200);
	window_spawns_limit(&spawns, 1);
	assert_row(&spawns, 0, "sh", "p099", (struct spawn_sums){ 99, 0, 1, 0, 99 * 99, 0 });
	assert_sums(window_spawns_total(&spawns), total);
	window_spawns_fini(&spawns);
	window_spawns_limit(&spawns, 1);
}

/* More names than a sum may have: what has no row is in `others`. */
static void test_more_names_than_rows(void **state)
{
	struct window_spawns spawns = {}, sum = { .ns = 7 };
	char comm[COMM_LEN];
	size_t i;

	for (i = 0; i < WINDOW_SPAWNS_SUM_MAX + 5; i++) {
		snprintf(comm, sizeof(comm), "p%zu", i);
		count(&spawns, "sh", comm, (struct spawn_sums){ .exits = 2, .life_ns = 1 });
	}
	assert_int_equal(spawns.n, WINDOW_SPAWNS_SUM_MAX);
	assert_sums(spawns.others, (struct spawn_sums){ .exits = 10, .life_ns = 5 });
	/* A row that is there is found all the same. */
	count(&spawns, "sh", "p0", (struct spawn_sums){ .exits = 1 });
	assert_int_equal(spawns.others.exits, 10);

	spawns.ns = 5;
	count(&sum, "make", "as", (struct spawn_sums){ .forks = 1 });
	window_spawns_add(&sum, &spawns);
	assert_int_equal(sum.ns, 12);
	assert_int_equal(sum.n, WINDOW_SPAWNS_SUM_MAX);
	assert_int_equal(sum.n_others, 1);
	assert_int_equal(window_spawns_total(&sum).exits, 2 * (WINDOW_SPAWNS_SUM_MAX + 5) + 1);
	assert_int_equal(window_spawns_total(&sum).forks, 1);
	window_spawns_fini(&spawns);
	window_spawns_fini(&sum);
}

/* Any way of merging windows has the same total, and no row has more than there was of it. */
static void test_merging_keeps_sums(void **state)
{
	struct window_spawns windows[20] = {}, merged = {}, folded = {}, part = {};
	struct spawn_sums total = {};
	uint64_t seed = 1, of_busy = 0;
	char comm[COMM_LEN];
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(windows); i++) {
		windows[i].ns = 10;
		for (k = 0; k < 200; k++) {
			struct spawn_sums sums = { .forks = 1, .exits = 1, .cpu_ns = k };

			seed = seed * 6364136223846793005U + 1442695040888963407U;
			/* A few names have most of the events. */
			snprintf(comm, sizeof(comm), "p%d",
				 (int)(k % 2 ? seed >> 33 & 3 : seed >> 33 & 255));
			of_busy += !strcmp(comm, "p1");
			window_spawns_count(&windows[i], "sh", comm, &sums);
			spawn_sums_add(&total, &sums);
		}
		window_spawns_limit(&windows[i], WINDOW_SPAWNS_MAX);
		window_spawns_add(&merged, &windows[i]);
		/* Tiers of four windows each, which are limited, too. */
		window_spawns_add(&part, &windows[i]);
		if (i % 4 == 3) {
			window_spawns_limit(&part, WINDOW_SPAWNS_MAX);
			window_spawns_add(&folded, &part);
			window_spawns_fini(&part);
		}
	}
	assert_sums(window_spawns_total(&merged), total);
	assert_sums(window_spawns_total(&folded), total);
	assert_int_equal(merged.ns, 10 * ARRAY_SIZE(windows));
	assert_int_equal(folded.ns, merged.ns);
	/* A name with many events in each window is exact. */
	for (i = 0; i < folded.n && strcmp(folded.v[i].comm, "p1"); i++)
		;
	assert_int_equal(folded.v[i].sums.exits, of_busy);
	for (i = 0; i < ARRAY_SIZE(windows); i++)
		window_spawns_fini(&windows[i]);
	window_spawns_fini(&merged);
	window_spawns_fini(&folded);
}

static struct window_spawns spawns_make(void)
{
	struct window_spawns spawns = { .ns = UINT64_MAX, .n_others = 3 };

	count(&spawns, "make", "cc1plus", (struct spawn_sums){ 1, 2, 3, 4, UINT64_MAX, 1 << 30 });
	count(&spawns, "make", "", (struct spawn_sums){ .exits = 1 });
	count(&spawns, "\x1b\xff", "abcdefghijklmno", (struct spawn_sums){ .forks = 7 });
	spawns.others = (struct spawn_sums){ 9, 8, 7, 6, 5, 4 };
	window_spawns_limit(&spawns, WINDOW_SPAWNS_MAX);
	return spawns;
}

static int decode(const struct bytes *bytes, size_t n, struct window_spawns *out)
{
	struct bytes_reader reader = { .at = bytes->data, .end = bytes->data + n };
	struct window window = {};
	int r = store_spawns_decode(&reader, &window);

	*out = window.spawns;
	return r;
}

static void test_section(void **state)
{
	_cleanup_(bytes_fini) struct bytes bytes = {};
	struct window_spawns spawns = spawns_make(), out;
	size_t n;

	store_spawns_encode(&(struct window){ .spawns = spawns }, &bytes);
	assert_int_equal(decode(&bytes, bytes.n, &out), 0);
	assert_int_equal(out.ns, spawns.ns);
	assert_int_equal(out.n_others, 3);
	assert_sums(out.others, spawns.others);
	assert_int_equal(out.n, 3);
	assert_memory_equal(out.v, spawns.v, 3 * sizeof(*out.v));
	assert_int_equal(window_spawns_bytes(&out), window_spawns_bytes(&spawns));
	window_spawns_fini(&out);
	for (n = 0; n < bytes.n; n++) {
		assert_int_equal(decode(&bytes, n, &out), -EBADMSG);
		window_spawns_fini(&out);
	}
	window_spawns_fini(&spawns);
}

/* What no stackd writes: rows out of order, twice, too many, or with too long a name. */
static void test_damaged_sections(void **state)
{
	static const char *const names[] = { "b", "a", "a", "0123456789abcdef" };
	struct window_spawns spawns, out;
	size_t i;

	for (i = 0; i + 1 < ARRAY_SIZE(names); i++) {
		_cleanup_(bytes_fini) struct bytes bytes = {};
		struct window_spawn rows[2] = {};

		memcpy(rows[0].comm, names[i], strlen(names[i]));
		memcpy(rows[1].comm, names[i + 1], strlen(names[i + 1]));
		spawns = (struct window_spawns){ .v = rows, .n = 2 };
		/* Behind a name of 16 bytes, the first number has a NUL for its end. */
		store_spawns_encode(&(struct window){ .spawns = spawns }, &bytes);
		assert_int_equal(decode(&bytes, bytes.n, &out), -EBADMSG);
		window_spawns_fini(&out);
	}
	{
		_cleanup_(bytes_fini) struct bytes bytes = {};
		static struct window_spawn rows[WINDOW_SPAWNS_MAX + 1];

		for (i = 0; i < ARRAY_SIZE(rows); i++)
			snprintf(rows[i].comm, sizeof(rows[i].comm), "p%03zu", i);
		spawns = (struct window_spawns){ .v = rows, .n = ARRAY_SIZE(rows) };
		store_spawns_encode(&(struct window){ .spawns = spawns }, &bytes);
		assert_int_equal(decode(&bytes, bytes.n, &out), -EBADMSG);
		window_spawns_fini(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_found_by_both_names),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_more_names_than_rows),
		cmocka_unit_test(test_merging_keeps_sums),
		cmocka_unit_test(test_section),
		cmocka_unit_test(test_damaged_sections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

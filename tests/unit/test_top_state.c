/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/top/state.h"
#include "common/base.h"

/* 2026-03-09 14:00:30 UTC, and an answer about the 5 s before. */
static const int64_t now = INT64_C(1773064830) * NS_PER_S;
static struct top_shown shown;

static int set_up(void **state)
{
	shown = (struct top_shown){
		.now = now,
		.start = now - 5 * NS_PER_S,
		.end = now,
		.has_windows = true,
		.step_ns = TOP_GAP_STEP_NS,
		.rows = 30,
		.height = 10,
	};
	return 0;
}

static void type(struct top_state *top, const char *text)
{
	for (; *text; text++)
		assert_int_equal(top_key(top, *text, &shown), ACTION_DRAW);
}

static void test_tabs(void **state)
{
	struct top_state top = { .selected = 7, .first = 3, .pane = PANE_STACKS };

	assert_int_equal(top_key(&top, '3', &shown), ACTION_ASK);
	assert_int_equal(top.tab, TAB_ON_CPU);
	assert_int_equal(top.pane, PANE_ROWS);
	assert_int_equal(top.selected + top.first, 0);
	assert_int_equal(top_key(&top, '6', &shown), ACTION_ASK);
	assert_int_equal(top_key(&top, '\t', &shown), ACTION_ASK);
	assert_int_equal(top.tab, TAB_OVERVIEW);
	assert_int_equal(top_key(&top, KEY_BTAB, &shown), ACTION_ASK);
	assert_int_equal(top.tab, TAB_STUCK);
	assert_int_equal(top_key(&top, '7', &shown), ACTION_NONE);
	assert_int_equal(top.tab, TAB_STUCK);
}

/* The selected row stays within the rows and on the screen. */
static void test_rows(void **state)
{
	struct top_state top = { 0 };

	assert_int_equal(top_key(&top, KEY_UP, &shown), ACTION_DRAW);
	assert_int_equal(top.selected, 0);
	for (int i = 0; i < 12; i++)
		top_key(&top, 'j', &shown);
	assert_int_equal(top.selected, 12);
	assert_int_equal(top.first, 3);
	top_key(&top, KEY_END, &shown);
	assert_int_equal(top.selected, 29);
	assert_int_equal(top.first, 20);
	top_key(&top, KEY_NPAGE, &shown);
	assert_int_equal(top.selected, 29);
	top_key(&top, KEY_PPAGE, &shown);
	assert_int_equal(top.selected, 20);
	top_key(&top, KEY_HOME, &shown);
	assert_int_equal(top.selected + top.first, 0);
	top.selected = 25;
	top_fit(&top, 4, 10);
	assert_int_equal(top.selected, 3);
	top_fit(&top, 0, 10);
	assert_int_equal(top.selected, 0);
	shown.rows = 0;
	assert_int_equal(top_key(&top, KEY_DOWN, &shown), ACTION_DRAW);
	assert_int_equal(top.selected, 0);
	assert_int_equal(top_key(&top, '\r', &shown), ACTION_NONE);
	assert_int_equal(top_key(&top, 'w', &shown), ACTION_NONE);
}

static void test_panes(void **state)
{
	struct top_state top = { .selected = 2 };

	assert_int_equal(top_key(&top, '\r', &shown), ACTION_STACKS);
	top.pane = PANE_STACKS;
	top_key(&top, KEY_DOWN, &shown);
	assert_int_equal(top.first, 1);
	assert_int_equal(top.selected, 2);
	top_key(&top, KEY_END, &shown);
	assert_int_equal(top.first, 20);
	assert_int_equal(top_key(&top, 27, &shown), ACTION_DRAW);
	assert_int_equal(top.pane, PANE_ROWS);
	assert_int_equal(top_key(&top, '?', &shown), ACTION_DRAW);
	assert_int_equal(top.pane, PANE_HELP);
	assert_int_equal(top_key(&top, '?', &shown), ACTION_DRAW);
	assert_int_equal(top.pane, PANE_ROWS);
	for (const char *const *line = top_help(); *line; line++)
		assert_in_range(strlen(*line), 1, 80);
}

/* Left selects the window before the one that is shown, Right the one after it, up to now. */
static void test_travel(void **state)
{
	struct top_state top = { .is_frozen = true };

	assert_int_equal(top_key(&top, KEY_RIGHT, &shown), ACTION_NONE);
	assert_int_equal(top_key(&top, KEY_LEFT, &shown), ACTION_ASK);
	assert_false(top.is_frozen);
	assert_true(top.until_ns == shown.start && top.since_ns == shown.start - TOP_PICK_NS);
	shown.end = shown.start;
	shown.start -= 5 * NS_PER_S;
	assert_int_equal(top_key(&top, KEY_RIGHT, &shown), ACTION_ASK);
	assert_true(top.since_ns == shown.end && top.until_ns == shown.end + TOP_PICK_NS);
	/* In a stretch without windows it goes on by steps. */
	shown.has_windows = false;
	assert_int_equal(top_key(&top, KEY_LEFT, &shown), ACTION_ASK);
	assert_true(top.until_ns == shown.start - TOP_GAP_STEP_NS);
	assert_int_equal(top_key(&top, KEY_RIGHT, &shown), ACTION_ASK);
	assert_int_equal(top.since_ns, 0);
	top.since_ns = 5;
	assert_int_equal(top_key(&top, 'n', &shown), ACTION_ASK);
	assert_int_equal(top.since_ns, 0);
	shown.start = 0;
	assert_int_equal(top_key(&top, KEY_LEFT, &shown), ACTION_NONE);
}

static void test_time(void **state)
{
	struct top_state top = { 0 };

	setenv("TZ", "UTC", 1);
	tzset();
	assert_int_equal(top_key(&top, 't', &shown), ACTION_DRAW);
	type(&top, "-10minx");
	assert_int_equal(top_key(&top, KEY_BACKSPACE, &shown), ACTION_DRAW);
	assert_int_equal(top_key(&top, '\r', &shown), ACTION_ASK);
	assert_true(top.since_ns == now - 600 * NS_PER_S);
	top_key(&top, 't', &shown);
	type(&top, "13:00");
	assert_int_equal(top_key(&top, '\n', &shown), ACTION_ASK);
	assert_true(top.since_ns == now - 3630 * NS_PER_S);
	/* Keys are text at the prompt; what is no time changes nothing. */
	top_key(&top, 't', &shown);
	type(&top, "q13");
	assert_int_equal(top_key(&top, '\r', &shown), ACTION_DRAW);
	assert_non_null(strstr(top.message, "q13 is no time"));
	assert_true(top.since_ns == now - 3630 * NS_PER_S);
	top_key(&top, 't', &shown);
	assert_int_equal(top.message[0], '\0');
	assert_int_equal(top_key(&top, 27, &shown), ACTION_DRAW);
	assert_true(top.since_ns == now - 3630 * NS_PER_S);
	top_key(&top, 't', &shown);
	assert_int_equal(top_key(&top, '\r', &shown), ACTION_ASK);
	assert_int_equal(top.since_ns, 0);
}

static void test_filter(void **state)
{
	struct top_state top = { .selected = 4 };

	top_key(&top, '/', &shown);
	type(&top, "sql");
	assert_int_equal(top_key(&top, '\r', &shown), ACTION_ASK);
	assert_string_equal(top.filter, "*sql*");
	assert_int_equal(top.selected, 0);
	/* A pattern stays as it is typed. The prompt begins without the last one. */
	top_key(&top, '/', &shown);
	type(&top, "my?");
	top_key(&top, '\r', &shown);
	assert_string_equal(top.filter, "my?");
	top_key(&top, '/', &shown);
	for (int i = 0; i < 2 * TOP_TEXT; i++)
		top_key(&top, 'x', &shown);
	assert_int_equal(top_key(&top, '\r', &shown), ACTION_ASK);
	assert_in_range(strlen(top.filter), 0, TOP_TEXT - 1);
	top_key(&top, '/', &shown);
	for (int i = 0; i < 2 * TOP_TEXT; i++)
		top_key(&top, 'x', &shown);
	top_key(&top, KEY_BACKSPACE, &shown);
	top_key(&top, '\r', &shown);
	assert_string_equal(top.filter, "");
	assert_non_null(strstr(top.message, "too long"));
}

/* A tab changes its own order and groups only, and says where it leaves no choice. */
static void test_choices(void **state)
{
	struct top_state top = { .tab = TAB_RUNNABLE };

	assert_int_equal(top_key(&top, 's', &shown), ACTION_DRAW);
	assert_non_null(strstr(top.message, "always by time"));
	assert_int_equal(top_key(&top, 'g', &shown), ACTION_DRAW);
	assert_non_null(strstr(top.message, "always of one name"));
	top_key(&top, '6', &shown);
	assert_int_equal(top_key(&top, 's', &shown), ACTION_DRAW);
	top_key(&top, '5', &shown);
	assert_string_equal(top_group(&top), "operation");
	assert_int_equal(top_key(&top, 'G', &shown), ACTION_ASK);
	assert_string_equal(top_group(&top), "process");
	top_key(&top, 'g', &shown);
	assert_string_equal(top_group(&top), "operation");
	/* Samples have no length. */
	top_key(&top, '3', &shown);
	top_key(&top, 's', &shown);
	assert_string_equal(top_sort(&top), "count");
	top_key(&top, 's', &shown);
	assert_string_equal(top_sort(&top), "total");
	assert_string_equal(top_group(&top), "stack");
}

static void test_rest(void **state)
{
	struct top_state top = { .tab = TAB_BLOCKED };

	assert_string_equal(top_sort(&top), "total");
	assert_int_equal(top_key(&top, 's', &shown), ACTION_ASK);
	assert_string_equal(top_sort(&top), "max");
	top_key(&top, 's', &shown);
	top_key(&top, 's', &shown);
	assert_string_equal(top_sort(&top), "total");
	assert_int_equal(top_key(&top, 'g', &shown), ACTION_ASK);
	assert_string_equal(top_group(&top), "process");
	assert_int_equal(top_key(&top, 'G', &shown), ACTION_ASK);
	assert_int_equal(top_key(&top, 'G', &shown), ACTION_ASK);
	assert_string_equal(top_group(&top), "reason");
	assert_int_equal(top_key(&top, 'x', &shown), ACTION_PICTURE);
	/* There is nothing to draw before the first answer. */
	shown.start = 0;
	assert_int_equal(top_key(&top, 'x', &shown), ACTION_NONE);
	shown.start = shown.end - 5 * NS_PER_S;
	assert_int_equal(top_key(&top, 'i', &shown), ACTION_ASK);
	assert_true(top.has_idle);
	assert_int_equal(top_key(&top, ' ', &shown), ACTION_DRAW);
	/* The time that is shown stays, also for other tabs. */
	assert_true(top.is_frozen);
	assert_true(top.since_ns == shown.start && top.until_ns == shown.end);
	assert_int_equal(top_key(&top, '3', &shown), ACTION_ASK);
	assert_true(top.since_ns == shown.start);
	assert_int_equal(top_key(&top, ' ', &shown), ACTION_ASK);
	assert_true(!top.is_frozen && !top.since_ns);
	assert_int_equal(top_key(&top, 'b', &shown), ACTION_MARK);
	assert_int_equal(top_key(&top, KEY_RESIZE, &shown), ACTION_DRAW);
	assert_int_equal(top_key(&top, KEY_F(5), &shown), ACTION_NONE);
	assert_int_equal(top_key(&top, 'q', &shown), ACTION_QUIT);
	assert_int_equal(top_key(&top, 3, &shown), ACTION_QUIT);
}

/* Rows can be compared if they stand for the same; the times of the answers may differ. */
static void test_same_rows(void **state)
{
	struct top_state a = { .tab = TAB_BLOCKED }, b = { .tab = TAB_BLOCKED, .since_ns = 5 };

	assert_true(top_asks_same(&a, &b));
	top_key(&b, 's', &shown);
	assert_false(top_asks_same(&a, &b));
	a.tab = b.tab = TAB_STUCK;
	assert_true(top_asks_same(&a, &b));
	top_key(&b, 'g', &shown);
	assert_false(top_asks_same(&a, &b));
	a.tab = b.tab = TAB_OVERVIEW;
	assert_true(top_asks_same(&a, &b));
	b.tab = TAB_RUNNABLE;
	assert_false(top_asks_same(&a, &b));
	b.tab = a.tab;
	top_key(&b, 'i', &shown);
	assert_false(top_asks_same(&a, &b));
	b.has_idle = false;
	snprintf(b.filter, sizeof(b.filter), "*sql*");
	assert_false(top_asks_same(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_tabs, set_up),
		cmocka_unit_test_setup(test_rows, set_up),
		cmocka_unit_test_setup(test_panes, set_up),
		cmocka_unit_test_setup(test_travel, set_up),
		cmocka_unit_test_setup(test_time, set_up),
		cmocka_unit_test_setup(test_filter, set_up),
		cmocka_unit_test_setup(test_choices, set_up),
		cmocka_unit_test_setup(test_rest, set_up),
		cmocka_unit_test_setup(test_same_rows, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

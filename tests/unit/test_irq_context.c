/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lets tasks and interrupts of one CPU raise softirqs, and looks whose they are when they run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/irq_context.bpf.h"

enum { NET_TX = 2, NET_RX = 3 };

/* Raises a softirq in an interrupt that comes in between. */
static void interrupt(struct irq_context *context, uint32_t number)
{
	irq_context_enter(&context->irq);
	irq_context_raise(context, number);
	irq_context_leave(&context->irq);
}

/* True if the softirq that begins is one of the current task. */
static bool is_own(struct irq_context *context, uint32_t number)
{
	irq_context_enter_softirq(context, number);
	return context->is_own;
}

static void test_of_task(void **state)
{
	struct irq_context context = { 0 };

	(void)state;
	irq_context_raise(&context, NET_RX);
	assert_true(is_own(&context, NET_RX));
	irq_context_raise(&context, NET_TX); /* by its own softirq */
	irq_context_leave(&context.softirq);
	assert_true(is_own(&context, NET_TX));
	irq_context_leave(&context.softirq);
	assert_false(is_own(&context, NET_RX)); /* nobody has raised it again */
}

static void test_of_interrupt(void **state)
{
	struct irq_context context = { 0 };

	(void)state;
	interrupt(&context, NET_RX);
	irq_context_raise(&context, NET_TX);
	assert_false(is_own(&context, NET_RX));
	irq_context_raise(&context, NET_RX); /* by the interrupt's softirq */
	irq_context_leave(&context.softirq);
	assert_true(is_own(&context, NET_TX));
	interrupt(&context, NET_TX);
	irq_context_leave(&context.softirq);
	assert_false(is_own(&context, NET_RX));
	irq_context_leave(&context.softirq);
	assert_false(is_own(&context, NET_TX));
}

static void test_of_timer(void **state)
{
	struct irq_context context = { .timer = 1 };

	(void)state;
	irq_context_raise(&context, NET_TX);
	irq_context_leave(&context.timer);
	assert_false(is_own(&context, NET_TX));
}

static void test_of_both(void **state)
{
	struct irq_context context = { 0 };

	(void)state;
	irq_context_raise(&context, NET_RX);
	interrupt(&context, NET_RX);
	assert_false(is_own(&context, NET_RX));
	irq_context_leave(&context.softirq);
	irq_context_raise(&context, NET_RX);
	assert_true(is_own(&context, NET_RX));
}

static void test_of_another_task(void **state)
{
	struct irq_context context = { 0 };

	(void)state;
	irq_context_raise(&context, NET_TX);
	interrupt(&context, NET_RX);
	irq_context_clear(&context);
	irq_context_raise(&context, NET_RX);
	assert_false(is_own(&context, NET_TX));
	irq_context_leave(&context.softirq);
	assert_false(is_own(&context, NET_RX));
}

/* A softirq that one task has raised before another did is not that one's. */
static void test_of_two_tasks(void **state)
{
	struct irq_context context = { 0 };

	irq_context_raise(&context, NET_RX);
	irq_context_clear(&context);
	irq_context_raise(&context, NET_RX);
	assert_false(is_own(&context, NET_RX));
	irq_context_leave(&context.softirq);
	irq_context_raise(&context, NET_RX);
	assert_true(is_own(&context, NET_RX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_task),		cmocka_unit_test(test_of_interrupt),
		cmocka_unit_test(test_of_timer),	cmocka_unit_test(test_of_both),
		cmocka_unit_test(test_of_another_task), cmocka_unit_test(test_of_two_tasks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

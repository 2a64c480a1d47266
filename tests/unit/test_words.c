/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The client has a text for each word that the daemon may send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/shared.h"
#include "client/render/render.h"
#include "daemon/query/answer.h"
#include "daemon/session/filter.h"
#include "daemon/window/stack.h"
#include "daemon/window/task_state.h"

static void test_flags_have_words(void **state)
{
	size_t n = 0;

	for (; answer_stack_flag(n); n++)
		if (!flag_text(answer_stack_flag(n)))
			fail_msg("no words for the flag %s", answer_stack_flag(n));
	/* The list has each flag that a stack can have. */
	assert_true(1U << (n - 1) >= STACK_IS_UNREAD);
	assert_null(flag_text("no such flag"));
}

static void assert_has_words(uint32_t bits)
{
	char letter[8];
	struct wire_row row = { .state = letter };
	char *words;

	strncpy(letter, task_state_letter(bits), sizeof(letter) - 1);
	letter[sizeof(letter) - 1] = '\0';
	words = state_words(&row);
	if (strcmp(words, letter) == 0)
		fail_msg("no words for the state %s", letter);
	free(words);
}

static void test_states_have_words(void **state)
{
	static const uint32_t above[] = { STATE_PREEMPTED, STATE_NEW, STATE_SEEDED | 1, 0x402 };
	uint32_t bits;
	size_t i;

	for (bits = 0; bits <= 0x7ff; bits++)
		assert_has_words(bits);
	for (i = 0; i < sizeof(above) / sizeof(above[0]); i++)
		assert_has_words(above[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flags_have_words),
		cmocka_unit_test(test_states_have_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

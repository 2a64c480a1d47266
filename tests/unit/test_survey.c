/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "bpf/call_site.h"
#include "common/base.h"
#include "daemon/unwind/survey.h"

/* Begin functions as compilers do: with and without a frame pointer. */
#define FRAMED	  "\x55\x48\x89\xe5\x41\x57\xc3"
#define FRAMED_2  "\x55\x48\x8b\xec\xc3"
#define SCHEDULED "\x55\xb8\x01\x00\x00\x00\x48\x89\xe5\xc3"
#define MARKED	  "\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\xc3"
#define BARE	  "\x41\x57\x41\x56\x53\xc3"
#define BARE_BX	  "\x53\x48\x89\xfb\x5b\xc3"
#define BARE_ROOM "\x48\x83\xec\x08\x48\x83\xc4\x08\xc3"
/* saves bp, which holds no frame pointer: mov %rdi,%rbp */
#define BARE_BP \
	"\x55\x48\x89\xfd\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x5d\xc3"
#define LEAF "\x31\xc0\xc3" /* does not use the stack */

#define SURVEY(address, code) survey_of(address, code, sizeof(code) - 1)

static struct survey survey_of(uint64_t address, const char *code, size_t n)
{
	struct survey survey = { 0 };

	survey_add(&survey, address, (const uint8_t *)code, n);
	return survey;
}

static void test_functions_are_told_by_their_beginning(void **state)
{
	struct survey s = SURVEY(0x1000, FRAMED FRAMED_2 SCHEDULED MARKED LEAF);

	assert_int_equal(s.framed, 4);
	assert_int_equal(s.bare, 0);
	s = SURVEY(0x1000, BARE BARE_BX BARE_ROOM BARE_BP LEAF);
	assert_int_equal(s.framed, 0);
	assert_int_equal(s.bare, 4);
}

/* A 0 may end padding or any other instruction, so that a function is aligned behind it. */
static void test_zeroes_do_not_begin_functions(void **state)
{
	struct survey s = SURVEY(0x1000, "\xb8\x01\x00\x00\x00\x55\x48\x89\xe5\xc3");

	assert_int_equal(s.framed, 0);
	s = SURVEY(0x100b, "\xb8\x01\x00\x00\x00\x55\x48\x89\xe5\xc3");
	assert_int_equal(s.framed, 1);
	s = SURVEY(0x1000, "\x75\x55\x48\x89\xe5"); /* 0x55 is a part of a jump */
	assert_int_equal(s.framed, 0);
}

/* What ends before it can tell counts on neither side. */
static void test_truncated_code(void **state)
{
	static const char whole[] = FRAMED BARE BARE_ROOM BARE_BP;

	for (size_t n = 0; n < sizeof(whole); n++) {
		struct survey s = survey_of(0x1000, whole, n);

		assert_int_equal(s.framed, n >= 4);
		assert_true(s.bare <= 3);
	}
}

static void test_few_bare_functions_are_borne(void **state)
{
	assert_false(survey_keeps_frames(&(struct survey){ 0, 0 }));
	assert_true(survey_keeps_frames(&(struct survey){ 1, 0 }));
	assert_false(survey_keeps_frames(&(struct survey){ 1, 1 }));
	assert_false(survey_keeps_frames(&(struct survey){ 7, 2 }));
	assert_true(survey_keeps_frames(&(struct survey){ 8, 2 }));
}

static void test_some_code_is_bare_for_sure(void **state)
{
	assert_false(survey_is_bare(&(struct survey){ 0, 0 }));
	assert_false(survey_is_bare(&(struct survey){ 0, 3 }));
	assert_true(survey_is_bare(&(struct survey){ 0, 4 }));
	assert_true(survey_is_bare(&(struct survey){ 4, 5 }));
	assert_false(survey_is_bare(&(struct survey){ 5, 5 }));
}

/* The code of n bytes that end at a return address. */
static uint64_t before(const char *code, size_t n)
{
	uint8_t bytes[8] = { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };
	uint64_t word;

	memcpy(bytes + 8 - n, code, n);
	memcpy(&word, bytes, sizeof(word));
	return word;
}

#define IS_CALL(code) call_site_is(before(code, sizeof(code) - 1))

static void test_calls(void **state)
{
	assert_true(IS_CALL("\xe8\x01\x02\x03\x04"));		  /* call rel32 */
	assert_true(IS_CALL("\xff\xd0"));			  /* call *%rax */
	assert_true(IS_CALL("\x41\xff\xd7"));			  /* call *%r15 */
	assert_true(IS_CALL("\xff\x13"));			  /* call *(%rbx) */
	assert_true(IS_CALL("\xff\x50\x18"));			  /* call *0x18(%rax) */
	assert_true(IS_CALL("\xff\x14\xc8"));			  /* call *(%rax,%rcx,8) */
	assert_true(IS_CALL("\x41\xff\x54\x24\x08"));		  /* call *8(%r12) */
	assert_true(IS_CALL("\xff\x90\x00\x01\x00\x00"));	  /* call *0x100(%rax) */
	assert_true(IS_CALL("\xff\x15\x10\x20\x30\x00"));	  /* call *0x302010(%rip) */
	assert_true(IS_CALL("\xff\x14\xc5\x00\x10\x20\x00"));	  /* call *0x201000(,%rax,8) */
	assert_true(IS_CALL("\x41\xff\x94\x24\x00\x01\x00\x00")); /* call *0x100(%r12) */
}

static void test_other_instructions_are_no_calls(void **state)
{
	assert_false(IS_CALL("\x90"));
	assert_false(IS_CALL("\xe9\x01\x02\x03\x04"));	   /* jmp rel32 */
	assert_false(IS_CALL("\xe8\x01\x02\x03"));	   /* a call cut short */
	assert_false(IS_CALL("\xff\xe0"));		   /* jmp *%rax */
	assert_false(IS_CALL("\xff\x25\x10\x20\x30\x00")); /* jmp *0x302010(%rip) */
	assert_false(IS_CALL("\xff\x30"));		   /* push (%rax) */
	assert_false(IS_CALL("\xff\x15"));		   /* a call cut short */
	assert_false(IS_CALL("\xff\x14"));
	assert_false(IS_CALL("\xff\x54\x24"));
	assert_false(IS_CALL("\xff\x94\x24\x00\x01\x00"));
	assert_false(IS_CALL("\xe8\x01\x02\x03\x04\x90")); /* behind the next instruction */
}

static uint64_t word_of(const char *code)
{
	uint64_t word;

	memcpy(&word, code, sizeof(word));
	return word;
}

static void test_signal_return(void **state)
{
	/* add $8,%rsp; ret, and what is not quite that */
	assert_int_equal(call_site_leaves(word_of("\x48\x83\xc4\x08\xc3\x90\x90\x90")), 8);
	assert_int_equal(call_site_leaves(word_of("\x48\x83\xc4\x78\xc3\x00\x00\x00")), 0x78);
	assert_int_equal(call_site_leaves(word_of("\x48\x83\xc4\x88\xc3\x90\x90\x90")), 0);
	assert_int_equal(call_site_leaves(word_of("\x48\x83\xc4\x09\xc3\x90\x90\x90")), 0);
	assert_int_equal(call_site_leaves(word_of("\x48\x83\xc4\x08\x5d\xc3\x90\x90")), 0);
	assert_int_equal(call_site_leaves(word_of("\x48\x83\xec\x08\xc3\x90\x90\x90")), 0);
	assert_true(call_site_is_signal(word_of("\x48\xc7\xc0\x0f\x00\x00\x00\x0f"))); /* glibc */
	assert_true(call_site_is_signal(word_of("\xb8\x0f\x00\x00\x00\x0f\x05\x90")));
	assert_false(call_site_is_signal(word_of("\xb8\x0e\x00\x00\x00\x0f\x05\x90")));
	assert_false(call_site_is_signal(0));
	assert_true(call_site_exits(word_of("\x89\xc7\x31\xc0\xb0\x3c\x0f\x05")));
	assert_false(call_site_exits(word_of("\x89\xc7\x31\xc0\xb0\x3b\x0f\x05")));
}

/* The first byte is the one before the next instruction. */
static void test_beginning_of_a_function(void **state)
{
	assert_int_equal(call_site_frame(word_of("\x90\x55\x48\x89\xe5\x41\x57\x41")),
			 CALL_SITE_NONE);
	assert_int_equal(call_site_frame(word_of("\x90\xf3\x0f\x1e\xfa\x55\x48\x89")),
			 CALL_SITE_NONE);
	assert_int_equal(call_site_frame(word_of("\x55\x48\x89\xe5\x41\x57\x41\x56")),
			 CALL_SITE_SAVED);
	assert_int_equal(call_site_frame(word_of("\x55\x48\x8b\xec\x41\x57\x41\x56")),
			 CALL_SITE_SAVED);
	assert_int_equal(call_site_frame(word_of("\x5d\xc3\x90\x90\x90\x90\x90\x90")),
			 CALL_SITE_NONE);
	assert_int_equal(call_site_frame(word_of("\xe5\x41\x57\x41\x56\x41\x55\x41")),
			 CALL_SITE_SET);
	assert_int_equal(call_site_frame(word_of("\x90\xf3\x0f\x1e\xfa\x31\xc0\xc3")),
			 CALL_SITE_SET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_are_told_by_their_beginning),
		cmocka_unit_test(test_zeroes_do_not_begin_functions),
		cmocka_unit_test(test_truncated_code),
		cmocka_unit_test(test_few_bare_functions_are_borne),
		cmocka_unit_test(test_some_code_is_bare_for_sure),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_other_instructions_are_no_calls),
		cmocka_unit_test(test_signal_return),
		cmocka_unit_test(test_beginning_of_a_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

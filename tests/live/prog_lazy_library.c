/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The library that prog_lazy calls: ld.so chooses, slowly, one of two functions at the first call.
 */
#include "prog.h"

int lazy_call(int n);

static NAMED int lazy_callee(int n)
{
	return n + 1;
}

/* Chooses the function; ld.so calls it while it resolves the name. */
static __attribute__((used)) void *lazy_choose(void)
{
	raw_nanosleep(20 * 1000000);
	return (void *)lazy_callee;
}

int lazy_call(int n) __attribute__((ifunc("lazy_choose")));

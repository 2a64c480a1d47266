/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What prog_lazy calls: which of two it is is found out, slowly, when it is first called. */
#include "prog.h"

int lazy_call(int n);

static NAMED int lazy_callee(int n)
{
	return n + 1;
}

/* Called by ld.so while it resolves the name. */
static __attribute__((used)) void *lazy_choose(void)
{
	raw_nanosleep(20 * 1000000);
	return (void *)lazy_callee;
}

int lazy_call(int n) __attribute__((ifunc("lazy_choose")));

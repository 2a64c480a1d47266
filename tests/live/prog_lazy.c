/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * prog_lazy: sleeps in ld.so while that resolves a function at its first call, as it does for each
 * program that is not linked with -z now. The frames below are of code that aligns its stack
 * pointer.
 */
#include "prog.h"

int lazy_call(int n);

NAMED int with_lazy(int n)
{
	volatile char local[100];

	local[n] = (char)n;
	return lazy_call(n) + local[n];
}

NAMED int work(int n)
{
	return with_lazy(n) + 1;
}

int main(void)
{
	int n;

	wait_for_start();
	n = work(1);
	wait_for_end();
	return n == 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A library that prog_unwind loads while it runs. */
int library_call(int (*callback)(int), int n);

int library_call(int (*callback)(int), int n)
{
	volatile int local[8] = { n };

	return callback(n) + local[0];
}

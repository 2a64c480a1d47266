/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * prog_compat: a 32-bit program that sleeps 8 times 20 ms, and then in read() until the end of
 * stdin. It is linked with no library, as hosts need not have those for 32-bit programs.
 */

enum { READ = 3, WRITE = 4, NANOSLEEP = 162, EXIT = 1, COUNT = 8, SLEEP_NS = 20000000 };

static int call(int number, int a, int b, int c)
{
	int r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return r;
}

void _start(void)
{
	int sleep[2] = { 0, SLEEP_NS };
	char c;

	call(WRITE, 1, (int)"ready\n", 6);
	call(READ, 0, (int)&c, 1);
	for (int i = 0; i < COUNT; i++)
		call(NANOSLEEP, (int)sleep, 0, 0);
	call(WRITE, 1, (int)"done\n", 5);
	while (call(READ, 0, (int)&c, 1) > 0)
		;
	call(EXIT, 0, 0, 0);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sleeps in a destructor while an exception is thrown through it, and in the exception's handler.
 */
#include <unistd.h>

#include <cstdio>

static volatile int sink;

extern "C" {

__attribute__((noipa)) int nap(int n)
{
	usleep(20000);
	return n + sink;
}

__attribute__((noipa)) void destroy(int n)
{
	sink += nap(n) & 0;
}

__attribute__((noipa)) int thrower(int n)
{
	if (n)
		throw n;
	return sink;
}
}

struct guard {
	int n;
	~guard() { destroy(n); }
};

extern "C" __attribute__((noipa)) int guarded(int n)
{
	guard g = { n };

	return thrower(n) + g.n;
}

extern "C" __attribute__((noipa)) int handler(int n)
{
	try {
		return guarded(n);
	} catch (int caught) {
		return nap(caught) + sink;
	}
}

int main()
{
	std::printf("ready pid=%d\n", getpid());
	std::fflush(stdout);
	std::getchar();
	for (int i = 0; i < 8; i++)
		sink += handler(1) & 0;
	std::printf("done\n");
	std::fflush(stdout);
	while (std::getchar() != EOF)
		;
	return 0;
}

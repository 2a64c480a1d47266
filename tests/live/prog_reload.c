/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * prog_reload ROUNDS COUNT US FILE..: in each round loads one library after the other, which the
 * kernel maps to where the one before was, sleeps COUNT times US us in it and closes it. If COUNT
 * is 0, the library itself sleeps once, so that its function is the leaf of the stack. Before
 * "done" it prints a line "where ADDRESS" for each library and round, and "slept N": a timer that
 * ends before its thread has left the CPU is no sleep. With PIECES=N in the environment it first
 * maps N pieces of code.
 */

#include "prog.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>

static useconds_t sleep_us;
static long slept;

static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static NAMED int nap(int n)
{
	long before = switches();

	usleep(sleep_us);
	slept += switches() - before;
	return n + 1;
}

static NAMED int sleep_in(const char *path, long count)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*call)(int (*)(int), int);
	long before, (*nap_there)(long);
	int sum = 0;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	*(void **)&call = dlsym(library, "library_call");
	need(call != NULL, "library_call");
	*(void **)&nap_there = dlsym(library, "library_nap");
	need(nap_there != NULL, "library_nap");
	for (long i = 0; i < count; i++)
		sum += call(nap, (int)i);
	if (!count) {
		before = switches();
		sum += (int)nap_there(sleep_us);
		slept += switches() - before;
	}
	printf("where %p\n", (void *)call);
	need(!dlclose(library), "dlclose");
	return sum;
}

static void pieces_map(void)
{
	const char *text = getenv("PIECES");
	long n = text ? strtol(text, NULL, 10) : 0, page = 4096;
	char *start;

	if (!n)
		return;
	start = mmap(NULL, (size_t)(2 * n * page), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(start != MAP_FAILED, "mmap");
	for (long i = 0; i < n; i++)
		need(!mprotect(start + 2 * i * page, (size_t)page, PROT_READ | PROT_EXEC),
		     "mprotect");
}

int main(int argc, char **argv)
{
	long rounds = arg_number(argc, argv, 1, 1), count = arg_number(argc, argv, 2, 1);
	int sum = 0;

	pieces_map();
	sleep_us = (useconds_t)arg_number(argc, argv, 3, 1000);
	wait_for_start();
	for (long i = 0; i < rounds; i++)
		for (int k = 4; k < argc; k++)
			sum += sleep_in(argv[k], count);
	printf("sum %d\nslept %ld\n", sum, slept);
	wait_for_end();
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * prog_jit PLACE [MS]: runs code that is hard to name. jit: waits below two functions that it makes
 * at run time and lists in /tmp/perf-PID.map; late: waits 5 ms, again and again, below two such
 * functions and one that keeps no frame pointer, and only says where they are; memfd: waits below a
 * function of a library loaded from memory; vdso: reads the clock for MS ms.
 */

#include "prog.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

static volatile int sink;

NAMED int nap(int n)
{
	usleep(3600u * 1000000u);
	return n + sink;
}

NAMED int brief_nap(int n)
{
	usleep(5000);
	return n + sink;
}

#ifdef __x86_64__
typedef int (*made_fn)(int n);

/* Writes code at `at`: push %rbp; mov %rsp,%rbp; movabs $callee,%rax; call *%rax; pop %rbp; ret */
static made_fn function_make(unsigned char *at, made_fn callee)
{
	static const unsigned char head[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8 };
	static const unsigned char tail[] = { 0xff, 0xd0, 0x5d, 0xc3 };

	memcpy(at, head, sizeof(head));
	memcpy(at + sizeof(head), &callee, sizeof(callee));
	memcpy(at + sizeof(head) + sizeof(callee), tail, sizeof(tail));
	return (made_fn)(uintptr_t)at;
}

/*
 * Writes code at `at` that keeps no frame pointer: sub $8,%rsp; movabs $callee,%rax; call *%rax;
 * add $8,%rsp; ret
 */
static made_fn bare_function_make(unsigned char *at, made_fn callee)
{
	static const unsigned char head[] = { 0x48, 0x83, 0xec, 0x08, 0x48, 0xb8 };
	static const unsigned char tail[] = { 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3 };

	memcpy(at, head, sizeof(head));
	memcpy(at + sizeof(head), &callee, sizeof(callee));
	memcpy(at + sizeof(head) + sizeof(callee), tail, sizeof(tail));
	return (made_fn)(uintptr_t)at;
}

/* Makes two functions, at code + 64 and, calling it, at code + 128. */
static unsigned char *code_make(made_fn callee)
{
	unsigned char *code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(code != MAP_FAILED, "map code");
	function_make(code + 128, function_make(code + 64, callee));
	return code;
}

static int run_late(void)
{
	unsigned char *code = code_make(brief_nap);
	made_fn bare;

	bare = bare_function_make(code + 192, (made_fn)(uintptr_t)(code + 128));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	printf("ready %lx %lx %lx\n", (unsigned long)code + 64, (unsigned long)code + 128,
	       (unsigned long)code + 192);
	fflush(stdout);
	for (;;)
		bare(1);
}

static int run_jit(void)
{
	unsigned char *code = code_make(nap);
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	need(map != NULL, "write the map");
	fprintf(map, "%lx 20 jit:inner the;1st\n%lx 20 jit:outer\n", (unsigned long)code + 64,
		(unsigned long)code + 128);
	fclose(map);
	printf("ready map=%s\n", path);
	fflush(stdout);
	return ((made_fn)(uintptr_t)(code + 128))(1);
}
#else
static int run_late(void)
{
	printf("ready none\n");
	return 0;
}

static int run_jit(void)
{
	printf("ready none\n");
	return 0;
}
#endif

static int run_memfd(const char *program)
{
	int fd = (int)syscall(SYS_memfd_create, "stackd code", 0), from;
	int (*call)(int (*callback)(int), int n);
	char path[4096];
	struct stat st;
	void *library;

	snprintf(path, sizeof(path), "%.*s/libprog_unwind.so",
		 (int)(strrchr(program, '/') - program), program);
	from = open(path, O_RDONLY);
	need(from >= 0 && fstat(from, &st) == 0, path);
	need(sendfile(fd, from, NULL, (size_t)st.st_size) == st.st_size, "copy the library");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	library = dlopen(path, RTLD_NOW);
	need(library != NULL, "load it");
	call = (int (*)(int (*)(int), int))dlsym(library, "library_call");
	printf("ready\n");
	fflush(stdout);
	return call(nap, 1) + sink;
}

NAMED int read_clock(int64_t ms)
{
	int64_t end = now_ns(CLOCK_MONOTONIC) + ms * 1000000;

	while (now_ns(CLOCK_MONOTONIC) < end)
		sink++;
	return sink;
}

int main(int argc, char **argv)
{
	need(argc > 1, "PLACE");
	if (strcmp(argv[1], "jit") == 0)
		return run_jit() + sink;
	if (strcmp(argv[1], "late") == 0)
		return run_late() + sink;
	if (strcmp(argv[1], "memfd") == 0)
		return run_memfd(argv[0]) + sink;
	return read_clock(arg_number(argc, argv, 2, 3000)) & 0;
}

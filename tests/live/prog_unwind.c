/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * prog_unwind PLACE [N [COUNT [US]]]: sleeps COUNT times US us in usleep(), called from code that
 * is hard to unwind. It is built as distributions build: optimized, without frame pointers.
 */

#include "prog.h"

#include <alloca.h>
#ifdef WITH_LIBRARY
#include <dlfcn.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

enum { COUNT = 8, SLEEP_US = 20000 };

static volatile int sink;
static useconds_t sleep_us;

/* Sleeps. After each call some work is left, so that none is a tail call. */
NAMED int nap(int n)
{
	usleep(sleep_us);
	return n + sink;
}

#define CALLER(name, callee)                     \
	NAMED int name(int n)                    \
	{                                        \
		volatile int local[4] = { n };   \
                                                 \
		return callee(n + 1) + local[0]; \
	}

CALLER(f10, nap)
CALLER(f9, f10)
CALLER(f8, f9)
CALLER(f7, f8)
CALLER(f6, f7)
CALLER(f5, f6)
CALLER(f4, f5)
CALLER(f3, f4)
CALLER(f2, f3)
CALLER(f1, f2)

CALLER(left, nap)
CALLER(right, nap)

/*
 * Makes stacks that differ in one word: the two callers are the same code at different addresses.
 */
NAMED int with_twins(int n)
{
	static int turn;

	return (turn++ & 2 ? left(n) : right(n)) + sink;
}

NAMED int recurse(int n)
{
	volatile int local = n;

	return (n > 1 ? recurse(n - 1) : nap(n)) + local;
}

/* Does the same as with_twins(), and never makes the same stack twice in a row. */
NAMED int with_turns(int n)
{
	static int turn;
	volatile int local = n;

	if (n > 1)
		return with_turns(n - 1) + local;
	return (turn++ & 1 ? left(n) : right(n)) + local;
}

NAMED int with_alloca(int n)
{
	volatile char *room = alloca((size_t)(n + sink) * 16 + 64);

	room[0] = 1;
	return nap(n) + room[0];
}

/*
 * Has an aligned local variable beside an alloca(): GCC describes such a frame by DWARF
 * expressions.
 */
NAMED int with_realigned(int n)
{
	volatile char aligned[64] __attribute__((aligned(64)));
	volatile char *room = alloca((size_t)(n + sink) * 16 + 64);

	aligned[n & 63] = room[0] = 1;
	return nap(n) + aligned[0] + room[0];
}

NAMED int with_big_frame(int n)
{
	volatile char big[600000];

	big[n] = 1;
	return nap(n) + big[n];
}

NAMED void on_signal(int signo, siginfo_t *info, void *context)
{
	sink += nap(signo) & 0;
	/* Goes on behind the ud2 of traps(), which has two bytes. */
	if (signo == SIGILL)
		((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

NAMED int with_signal(int n)
{
	raise(SIGUSR1);
	return n + sink;
}

static void signal_prepare(void)
{
	struct sigaction action = { .sa_sigaction = on_signal,
				    .sa_flags = SA_ONSTACK | SA_SIGINFO };
	stack_t stack = { .ss_size = 65536 };

	stack.ss_sp = malloc(stack.ss_size);
	need(!sigaltstack(&stack, NULL) && !sigaction(SIGUSR1, &action, NULL) &&
		     !sigaction(SIGILL, &action, NULL),
	     "sigaction");
}

#ifdef WITH_LIBRARY
static int (*in_library)(int (*callback)(int), int n);

/*
 * A signal interrupts this function at its first instruction. The byte before it belongs to no
 * function: whoever looks that up, as for a return address, finds no way on.
 */
void traps(void);
asm(".text\n.p2align 4\n.skip 16, 0x90\n"
    ".globl traps\n.type traps, @function\ntraps:\n.cfi_startproc\n"
    "ud2\nret\n.cfi_endproc\n.size traps, . - traps\n");

NAMED int with_trap(int n)
{
	traps();
	return n + sink;
}

NAMED int with_library(int n)
{
	return in_library(nap, n) + sink;
}

static void library_prepare(const char *program)
{
	char path[4096];
	void *library;

	snprintf(path, sizeof(path), "%.*s/libprog_unwind.so",
		 (int)(strrchr(program, '/') - program), program);
	library = dlopen(path, RTLD_NOW);
	if (library)
		in_library = (int (*)(int (*)(int), int))dlsym(library, "library_call");
	if (!in_library) {
		fprintf(stderr, "%s: %s\n", path, dlerror());
		exit(2);
	}
}

#endif

#ifdef WITH_UNALIGNED
/*
 * Functions that keep frame pointers but not the alignment of the stack, as V8's: the frame of
 * unaligned() is off by a word, and that of nap() is not. with_unchained() leaves no frame pointer
 * in bp for unaligned() to save.
 */
int with_unaligned(int n);
int with_unchained(int n);
asm(".text\n"
    ".globl unaligned\n.type unaligned, @function\nunaligned:\n"
    "push %rbp\nmov %rsp, %rbp\nsub $8, %rsp\ncall nap\nleave\nret\n"
    ".size unaligned, . - unaligned\n"
    ".globl with_unaligned\n.type with_unaligned, @function\nwith_unaligned:\n"
    "push %rbp\nmov %rsp, %rbp\nsub $8, %rsp\ncall unaligned\nleave\nret\n"
    ".size with_unaligned, . - with_unaligned\n"
    ".globl with_unchained\n.type with_unchained, @function\nwith_unchained:\n"
    "push %rbp\nmov $1, %ebp\nsub $8, %rsp\ncall unaligned\nadd $8, %rsp\npop %rbp\nret\n"
    ".size with_unchained, . - with_unchained\n");

#endif

static int compare(const void *a, const void *b)
{
	const int *x = a;

	return nap(0) + (*x - *(const int *)b);
}

static ucontext_t here, there;

NAMED void in_context(int n)
{
	sink += nap(n);
	sink += 1;
}

/* Sleeps on a separate stack, whose last frame is marked as such. */
NAMED int with_context(int n)
{
	static char stack[64 * 1024];

	need(!getcontext(&there), "getcontext");
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = &here;
	makecontext(&there, (void (*)(void))in_context, 1, n);
	need(!swapcontext(&here, &there), "swapcontext");
	return sink;
}

/* Sleeps in a callback, so that the caller in between is a function of libc. */
NAMED int with_callback(int n)
{
	int numbers[2] = { n, 1 };

	qsort(numbers, 2, sizeof(numbers[0]), compare);
	return numbers[0] + sink;
}

NAMED static void work(int (*place)(int), int n, int count)
{
	int i;

	for (i = 0; i < count; i++)
		sink += place(n) & 0;
}

struct job {
	int (*place)(int);
	int n, count;
};

NAMED static void *worker(void *data)
{
	const struct job *job = data;

	work(job->place, job->n, job->count);
	return NULL;
}

#ifdef WITH_LIBRARY
/*
 * Begins a thread as musl does, by code without call frame information that ends the thread behind
 * its call.
 */
void *begins(void *data);
asm(".text\n.globl begins\n.type begins, @function\nbegins:\n"
    "sub $8, %rsp\ncall worker\n"
    "mov %eax, %edi\nxor %eax, %eax\nmov $60, %al\nsyscall\nhlt\n"
    ".size begins, . - begins\n");

#endif

int main(int argc, char *argv[])
{
	static const struct {
		const char *name;
		int (*place)(int);
	} places[] = {
		{ "deep", f1 },
		{ "recurse", recurse },
		{ "alloca", with_alloca },
		{ "realigned", with_realigned },
		{ "big_frame", with_big_frame },
		{ "signal", with_signal },
		{ "callback", with_callback },
		{ "thread", f1 },
		{ "context", with_context },
		{ "twins", with_twins },
		{ "turns", with_turns },
#ifdef WITH_LIBRARY
		{ "library", with_library },
		{ "trap", with_trap },
		{ "begins", f1 },
#endif
#ifdef WITH_UNALIGNED
		{ "unaligned", with_unaligned },
		{ "unchained", with_unchained },
#endif
	};
	struct job job = {
		.n = (int)arg_number(argc, argv, 2, 1),
		.count = (int)arg_number(argc, argv, 3, COUNT),
	};
	void *(*first)(void *) = worker;
	pthread_t thread;
	size_t i;

	sleep_us = (useconds_t)arg_number(argc, argv, 4, SLEEP_US);
	for (i = 0; argc > 1 && i < sizeof(places) / sizeof(places[0]); i++)
		if (strcmp(argv[1], places[i].name) == 0)
			job.place = places[i].place;
	if (!job.place)
		return 2;
	signal_prepare();
#ifdef WITH_LIBRARY
	if (job.place == with_library)
		library_prepare(argv[0]);
	if (strcmp(argv[1], "begins") == 0)
		first = begins;
#endif
	wait_for_start();
	if (strcmp(argv[1], "thread") == 0 || first != worker) {
		need(!pthread_create(&thread, NULL, first, &job), "pthread_create");
		pthread_join(thread, NULL);
	} else {
		work(job.place, job.n, job.count);
	}
	wait_for_end();
	return 0;
}

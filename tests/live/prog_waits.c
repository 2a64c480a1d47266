// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_waits COUNT MS: waits COUNT times MS milliseconds in each of four functions, one after the
 * other; the last one waits in state D. A peer thread ends the waits on futex and pipe.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "prog.h"

enum request { REQUEST_NONE, REQUEST_FUTEX, REQUEST_PIPE };

static int request_word;
static int answer_word;
static int pipe_fds[2];
static int64_t wait_ns;

static NAMED void peer_wait_for_request(void)
{
	while (__atomic_load_n(&request_word, __ATOMIC_ACQUIRE) == REQUEST_NONE)
		raw_futex_wait(&request_word, REQUEST_NONE);
}

static NAMED void peer_delay(void)
{
	raw_nanosleep(wait_ns);
}

static void *peer_main(void *arg)
{
	int request;

	for (;;) {
		peer_wait_for_request();
		request = __atomic_exchange_n(&request_word, REQUEST_NONE, __ATOMIC_ACQ_REL);
		peer_delay();
		if (request == REQUEST_FUTEX) {
			__atomic_store_n(&answer_word, 1, __ATOMIC_RELEASE);
			raw_futex_wake(&answer_word, 1);
		} else {
			need(write(pipe_fds[1], "x", 1) == 1, "write");
		}
	}
	return arg;
}

static void ask_peer(int request)
{
	__atomic_store_n(&request_word, request, __ATOMIC_RELEASE);
	raw_futex_wake(&request_word, 1);
}

static NAMED void wait_in_nanosleep(void)
{
	raw_nanosleep(wait_ns);
}

static NAMED void wait_in_futex(void)
{
	ask_peer(REQUEST_FUTEX);
	while (!__atomic_load_n(&answer_word, __ATOMIC_ACQUIRE))
		raw_futex_wait(&answer_word, 0);
	__atomic_store_n(&answer_word, 0, __ATOMIC_RELAXED);
}

static NAMED void wait_in_pipe_read(void)
{
	char c;

	ask_peer(REQUEST_PIPE);
	need(raw_syscall(SYS_read, pipe_fds[0], (long)&c, 1, 0) == 1, "read");
}

/*
 * Waits in state D: the parent of a vfork does so until the child has exited. The child touches no
 * stack: it sleeps and exits within the assembly.
 */
static NAMED void wait_in_vfork(void)
{
	struct timespec ts = { .tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000 };
	register struct timespec *sleep __asm__("r12") = &ts;
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	long pid;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov %[nanosleep], %%eax\n\t"
			 "mov %%r12, %%rdi\n\t"
			 "xor %%esi, %%esi\n\t"
			 "syscall\n\t"
			 "mov %[exit], %%eax\n\t"
			 "xor %%edi, %%edi\n\t"
			 "syscall\n"
			 "1:"
			 : "=a"(pid)
			 : "a"((long)SYS_clone), "D"((long)(CLONE_VM | CLONE_VFORK | SIGCHLD)),
			   "S"(0L), "d"(0L), "r"(r10), "r"(r8),
			   "r"(sleep), [nanosleep] "i"(SYS_nanosleep), [exit] "i"(SYS_exit_group)
			 : "rcx", "r11", "memory");
	need(pid > 0, "vfork");
	need(waitpid((pid_t)pid, NULL, 0) == pid, "waitpid");
}

static NAMED void run_waits(const char *name, void (*wait)(void), long count)
{
	int64_t cpu = now_ns(CLOCK_THREAD_CPUTIME_ID), start, took, most = 0, sum = 0;

	for (long i = 0; i < count; i++) {
		start = now_ns(CLOCK_MONOTONIC);
		wait();
		took = now_ns(CLOCK_MONOTONIC) - start;
		sum += took;
		most = took > most ? took : most;
	}
	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	printf("%s count=%ld ns=%lld max_ns=%lld cpu_ns=%lld\n", name, count, (long long)sum,
	       (long long)most, (long long)cpu);
}

int main(int argc, char **argv)
{
	long count = arg_number(argc, argv, 1, 5);
	pthread_t peer;
	int64_t start, cpu;

	wait_ns = arg_number(argc, argv, 2, 200) * 1000000;
	need(pipe(pipe_fds) == 0, "pipe");
	need(pthread_create(&peer, NULL, peer_main, NULL) == 0, "pthread_create");
	wait_for_start();
	start = now_ns(CLOCK_MONOTONIC);
	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	run_waits("wait_in_nanosleep", wait_in_nanosleep, count);
	run_waits("wait_in_futex", wait_in_futex, count);
	run_waits("wait_in_pipe_read", wait_in_pipe_read, count);
	run_waits("wait_in_vfork", wait_in_vfork, count);
	printf("wall ns=%lld\n", (long long)(now_ns(CLOCK_MONOTONIC) - start));
	printf("cpu ns=%lld\n", (long long)(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu));
	wait_for_end();
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * prog_paged: a thread sleeps in functions built without frame pointers, on a stack whose pages are
 * not in its page table, as if they were swapped out. Prints how many pages of the stack are
 * present while the thread sleeps.
 */

#include "prog.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK = 256 << 10, PAGE = 4096 };

static volatile int sink;
static volatile pid_t tid;

NAMED int nap(int n)
{
	usleep(3600u * 1000000u);
	return n + sink;
}

/* Each frame is a page or larger, so that the walk crosses many pages. */
#define CALLER(name, callee)                     \
	NAMED int name(int n)                    \
	{                                        \
		volatile char local[5000];       \
                                                 \
		local[n] = (char)n;              \
		return callee(n + 1) + local[n]; \
	}

CALLER(f5, nap)
CALLER(f4, f5)
CALLER(f3, f4)
CALLER(f2, f3)
CALLER(f1, f2)

static void *worker(void *arg)
{
	tid = (pid_t)syscall(SYS_gettid);
	sink = f1(0);
	return arg;
}

static bool is_asleep(void)
{
	char path[64], text[512] = "", *state;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	if (!f)
		return false;
	need(fgets(text, sizeof(text), f) != NULL, "read stat");
	fclose(f);
	state = strrchr(text, ')');
	return state && state[2] == 'S';
}

static int pages_present(const char *from)
{
	int fd = open("/proc/self/pagemap", O_RDONLY), present = 0;
	uint64_t entry;

	need(fd >= 0, "open pagemap");
	for (size_t at = 0; at < STACK; at += PAGE) {
		off_t offset = (off_t)(((uintptr_t)from + at) / PAGE * sizeof(entry));

		need(pread(fd, &entry, sizeof(entry), offset) == sizeof(entry), "read pagemap");
		present += entry >> 63 & 1;
	}
	close(fd);
	return present;
}

int main(void)
{
	int fd = (int)syscall(SYS_memfd_create, "stack", 0);
	pthread_attr_t attr;
	pthread_t thread;
	char *stack;

	need(fd >= 0 && ftruncate(fd, STACK) == 0, "make the stack");
	stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(stack != MAP_FAILED, "map the stack");
	pthread_attr_init(&attr);
	need(pthread_attr_setstack(&attr, stack, STACK) == 0, "set the stack");
	need(pthread_create(&thread, &attr, worker, NULL) == 0, "create the thread");
	while (!tid || !is_asleep())
		usleep(1000);
	/* The pages stay in the file. An access would fault them in again. */
	need(madvise(stack, STACK, MADV_DONTNEED) == 0, "drop the pages");
	printf("ready tid=%d present=%d\n", tid, pages_present(stack));
	fflush(stdout);
	getchar();
	return 0;
}

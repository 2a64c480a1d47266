/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is loaded into a daemon with LD_PRELOAD and makes its calls of one kind fail from the nth on. The
 * file named by FAULT_FILE says which; the test maps it, too, and may change it at any time. It
 * also makes threads hang.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* tests/live/fault.py knows this layout. */
enum kind {
	KIND_NONE,
	KIND_BPF,     /* bpf() that creates a map, a program, a link, ... */
	KIND_BPF_MAP, /* bpf() that reads or changes entries of a map */
	KIND_ACCEPT,
	KIND_MEMORY,
	KIND_WRITE,
	KIND_SYNC,
	KINDS
};

struct control {
	_Atomic int64_t kind;
	_Atomic int64_t first; /* the first call of that kind that fails, counted from 1 */
	_Atomic int64_t last;
	_Atomic int64_t error;
	_Atomic int64_t hits; /* calls that failed or hung */
	_Atomic int64_t pins; /* calls of BPF_OBJ_PIN so far */
	_Atomic int64_t calls[KINDS];
	/* Nanoseconds added to the clocks: to CLOCK_REALTIME, and to CLOCK_BOOTTIME. */
	_Atomic int64_t real_ns;
	_Atomic int64_t boot_ns;
	char hang[16]; /* threads of this name hang as soon as they open a file */
};

static struct control *control;

static uintptr_t program_start, program_size;

/* Notes where the program itself lies, which is the first object in the list. */
static int on_object(struct dl_phdr_info *info, size_t size, void *userdata)
{
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		program_start = info->dlpi_addr + segment->p_vaddr;
		program_size = segment->p_memsz;
	}
	return 1;
}

static __attribute__((constructor)) void control_map(void)
{
	const char *path = getenv("FAULT_FILE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		return;
	dl_iterate_phdr(on_object, NULL);
	map = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		control = map;
}

static bool fails(enum kind kind)
{
	int64_t call;

	if (!control)
		return false;
	call = atomic_fetch_add(&control->calls[kind], 1) + 1;
	if (atomic_load(&control->kind) != kind || call < atomic_load(&control->first) ||
	    call > atomic_load(&control->last))
		return false;
	atomic_fetch_add(&control->hits, 1);
	errno = (int)atomic_load(&control->error);
	return true;
}

/* Finds the next definition of a function, once. */
#define NEXT(name)                                                  \
	({                                                          \
		static __typeof__(name) *_next;                     \
		if (!_next)                                         \
			*(void **)&_next = dlsym(RTLD_NEXT, #name); \
		_next;                                              \
	})

static enum kind bpf_kind(long command)
{
	switch (command) {
	case BPF_MAP_LOOKUP_ELEM:
	case BPF_MAP_UPDATE_ELEM:
	case BPF_MAP_DELETE_ELEM:
	case BPF_MAP_GET_NEXT_KEY:
	case BPF_MAP_LOOKUP_AND_DELETE_ELEM:
	case BPF_MAP_LOOKUP_BATCH:
	case BPF_MAP_LOOKUP_AND_DELETE_BATCH:
	case BPF_MAP_UPDATE_BATCH:
	case BPF_MAP_DELETE_BATCH:
		return KIND_BPF_MAP;
	default:
		return KIND_BPF;
	}
}

/* Waits as long as threads of the calling thread's name are to hang. */
static void hang_if_asked(void)
{
	char name[16] = "";

	if (!control || !control->hang[0])
		return;
	pthread_getname_np(pthread_self(), name, sizeof(name));
	if (strncmp(name, control->hang, sizeof(name)) != 0)
		return;
	atomic_fetch_add(&control->hits, 1);
	while (!strncmp(name, control->hang, sizeof(name)))
		usleep(10000);
}

int open(const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = va_arg(args, int);
	va_end(args);
	hang_if_asked();
	return NEXT(open)(path, flags, mode);
}

int openat(int dir_fd, const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = va_arg(args, int);
	va_end(args);
	hang_if_asked();
	return NEXT(openat)(dir_fd, path, flags, mode);
}

/* libbpf has no wrapper for bpf(): it calls syscall(). */
long syscall(long number, ...)
{
	long a[6];
	va_list args;

	va_start(args, number);
	for (size_t i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_bpf && control && a[0] == BPF_OBJ_PIN)
		atomic_fetch_add(&control->pins, 1);
	if (number == SYS_bpf && fails(bpf_kind(a[0])))
		return -1;
	return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int r = NEXT(clock_gettime)(clock, now);
	int64_t ns;

	if (r || !control || (clock != CLOCK_REALTIME && clock != CLOCK_BOOTTIME))
		return r;
	ns = now->tv_sec * INT64_C(1000000000) + now->tv_nsec;
	ns += atomic_load(clock == CLOCK_REALTIME ? &control->real_ns : &control->boot_ns);
	now->tv_sec = ns / 1000000000;
	now->tv_nsec = ns % 1000000000;
	return 0;
}

int accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
	return fails(KIND_ACCEPT) ? -1 : NEXT(accept4)(fd, address, len, flags);
}

/*
 * True if the caller is the program itself. Allocations of libraries do not fail: json-c 0.16 does
 * not check what strdup() returns for the name of a member.
 */
static bool is_ours(const void *caller)
{
	return (uintptr_t)caller - program_start < program_size;
}

/* dlsym() allocates, too, so that malloc is called by glibc's own name for it. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

void *malloc(size_t size)
{
	return is_ours(__builtin_return_address(0)) && fails(KIND_MEMORY) ? NULL
									  : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return is_ours(__builtin_return_address(0)) && fails(KIND_MEMORY) ? NULL
									  : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return is_ours(__builtin_return_address(0)) && fails(KIND_MEMORY) ? NULL
									  : __libc_realloc(p, size);
}

ssize_t write(int fd, const void *data, size_t n)
{
	return fails(KIND_WRITE) ? -1 : NEXT(write)(fd, data, n);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t offset)
{
	return fails(KIND_WRITE) ? -1 : NEXT(pwrite64)(fd, data, n, offset);
}

int fsync(int fd)
{
	return fails(KIND_SYNC) ? -1 : NEXT(fsync)(fd);
}

int fdatasync(int fd)
{
	return fails(KIND_SYNC) ? -1 : NEXT(fdatasync)(fd);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attacks stackd as any local user can. Each attack prints "ready" when it is under way, goes on
 * until it is killed or its standard input ends, and takes its helpers with it.
 *
 *   prog_attack hang DIR FILE    maps a copy of FILE from an overlay over FUSE, mounted in a user
 *                                namespace at DIR; the FUSE server then answers nothing any more
 *   prog_attack threads N        has N threads that sleep and wake
 *   prog_attack forks N          forks N processes that exit at once, again and again
 *   prog_attack maps N FILE      maps FILE executable N times
 *   prog_attack perfmap N        writes a perf map of N lines, runs code at their addresses
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/fuse.h>

enum {
	REQUEST_BYTES = 1 << 18,
	ANSWER_BYTES = 1 << 18,
	FILE_NODE = 2,
	STACK_BYTES = 32 * 1024,
	CODE_BYTES = 4096,
	SERVER_S = 120, /* the server dies then, whatever happens, and nobody hangs any more */
};

static void die(const char *what)
{
	perror(what);
	_exit(2);
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

/* Waits until standard input ends. */
static void wait_for_end(void)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

/* Naps, and returns false when standard input has ended. */
static int goes_on(int ms)
{
	struct pollfd end = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&end, 1, ms) == 0;
}

static void text_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die(path);
	close(fd);
}

/* The FUSE server: one file "lib" in its root directory. */

static const char *content;
static size_t content_size;

static void attr_of(uint64_t node, struct fuse_attr *attr)
{
	*attr = (struct fuse_attr){
		.ino = node,
		.size = node == FILE_NODE ? content_size : 0,
		.mode = node == FILE_NODE ? S_IFREG | 0555 : S_IFDIR | 0755,
		.nlink = 1,
		.blksize = 4096,
	};
}

static void answer(int fd, const struct fuse_in_header *in, int error, const void *data,
		   size_t size)
{
	static char out[ANSWER_BYTES];
	struct fuse_out_header head = { (uint32_t)(sizeof(head) + size), error, in->unique };

	memcpy(out, &head, sizeof(head));
	if (size)
		memcpy(out + sizeof(head), data, size);
	if (write(fd, out, sizeof(head) + size) < 0 && errno != ENOENT)
		die("fuse");
}

static void init_answer(int fd, const struct fuse_in_header *in)
{
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = 31,
		.max_readahead = 65536,
		.max_write = 65536,
	};

	answer(fd, in, 0, &init, sizeof(init));
}

static void lookup_answer(int fd, const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out entry = { .nodeid = FILE_NODE };

	attr_of(FILE_NODE, &entry.attr);
	if (strcmp(name, "lib"))
		answer(fd, in, -ENOENT, NULL, 0);
	else
		answer(fd, in, 0, &entry, sizeof(entry));
}

static void read_answer(int fd, const struct fuse_in_header *in, const struct fuse_read_in *read_in)
{
	size_t size = read_in->size, at = read_in->offset;

	if (at > content_size)
		at = content_size;
	if (size > content_size - at)
		size = content_size - at;
	answer(fd, in, 0, content + at, size);
}

static void serve_one(int fd, const struct fuse_in_header *in)
{
	struct fuse_attr_out attr = { 0 };
	struct fuse_open_out opened = { 0 };
	struct fuse_statfs_out fs = { 0 };

	switch (in->opcode) {
	case FUSE_INIT:
		init_answer(fd, in);
		break;
	case FUSE_LOOKUP:
		lookup_answer(fd, in, (const char *)(in + 1));
		break;
	case FUSE_GETATTR:
		attr_of(in->nodeid, &attr.attr);
		answer(fd, in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(fd, in, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		read_answer(fd, in, (const void *)(in + 1));
		break;
	case FUSE_READDIR:
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		answer(fd, in, 0, NULL, 0);
		break;
	case FUSE_STATFS:
		fs.st.namelen = 255;
		answer(fd, in, 0, &fs, sizeof(fs));
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(fd, in, -ENOSYS, NULL, 0);
	}
}

/*
 * Serves until a byte comes from quiet_fd. From then on reads the requests, which makes those who
 * wait for them uninterruptible, prints each OPEN, and answers none.
 */
static void serve(int fuse_fd, int quiet_fd)
{
	static char request[REQUEST_BYTES];
	struct pollfd fds[] = { { fuse_fd, POLLIN, 0 }, { quiet_fd, POLLIN, 0 } };
	const struct fuse_in_header *in = (const void *)request;
	int is_quiet = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(SERVER_S);
	while (poll(fds, is_quiet ? 1 : 2, -1) > 0) {
		if (fds[1].revents && !is_quiet) {
			is_quiet = 1;
			continue;
		}
		if (read(fuse_fd, request, sizeof(request)) < 0)
			break;
		if (!is_quiet) {
			serve_one(fuse_fd, in);
		} else if (in->opcode != FUSE_FORGET) {
			printf("hang opcode %u by pid %u\n", in->opcode, in->pid);
			fflush(stdout);
		}
	}
	_exit(0);
}

static void user_namespace(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		die("unshare");
	text_write("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	text_write("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	text_write("/proc/self/gid_map", map);
}

static char *path_in(const char *dir, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		die("asprintf");
	return path;
}

static void file_load(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		die(path);
	content_size = (size_t)st.st_size;
	content = mmap(NULL, content_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (content == MAP_FAILED)
		die("mmap");
	close(fd);
}

/* Returns the pid of the server. */
static pid_t fuse_start(const char *at, int quiet_fd)
{
	pid_t server;
	int fd = open("/dev/fuse", O_RDWR);
	char options[128];

	if (fd < 0)
		die("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (mount("none", at, "fuse", 0, options))
		die("mount fuse");
	server = fork();
	if (!server)
		serve(fd, quiet_fd);
	close(fd);
	return server;
}

static int next_nap(void)
{
	return goes_on(10);
}

/*
 * Returns code in a mapping that is made now: a function that calls its argument and returns its
 * result. A stack through it has stackd read the mappings of this process again.
 */
static int (*code_make(void))(int (*)(void))
{
	/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
	static const unsigned char bytes[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		die("mmap");
	memcpy(page, bytes, sizeof(bytes));
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
		die("mprotect");
	return (int (*)(int (*)(void)))page;
}

static void hang(const char *dir, const char *file)
{
	int (*through)(int (*)(void));
	char *fuse = path_in(dir, "fuse"), *empty = path_in(dir, "empty");
	char *overlay = path_in(dir, "overlay"), *lib = path_in(dir, "overlay/lib"), *options;
	int quiet[2], fd;
	pid_t server;
	void *code;

	file_load(file);
	if (pipe(quiet))
		die("pipe");
	user_namespace();
	if (mount("none", dir, "tmpfs", 0, NULL))
		die("mount tmpfs");
	mkdir(fuse, 0755);
	mkdir(empty, 0755);
	mkdir(overlay, 0755);
	server = fuse_start(fuse, quiet[0]);
	if (asprintf(&options, "lowerdir=%s:%s", fuse, empty) < 0 ||
	    mount("none", overlay, "overlay", 0, options))
		die("mount overlay");
	fd = open(lib, O_RDONLY);
	if (fd < 0)
		die(lib);
	code = mmap(NULL, content_size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (code == MAP_FAILED || write(quiet[1], "q", 1) != 1)
		die("mmap");
	through = code_make();
	ready();
	while (through(next_nap))
		;
	/* Without its server, the end of this process would hang, too. */
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
}

static void *nap_run(void *data)
{
	for (;;)
		usleep(500000);
	return data;
}

static void threads(long n)
{
	pthread_attr_t attr;
	pthread_t thread;
	long i;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (i = 0; i < n && !pthread_create(&thread, &attr, nap_run, NULL); i++)
		;
	printf("%ld threads\n", i);
	ready();
	wait_for_end();
}

static void forks(long n)
{
	long i;

	ready();
	do {
		for (i = 0; i < n && goes_on(0); i++) {
			if (!fork())
				_exit(0);
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
		}
		while (wait(NULL) > 0)
			;
		printf("%ld forks\n", i);
		fflush(stdout);
	} while (goes_on(0));
}

static void maps(long n, const char *file)
{
	int fd = open(file, O_RDONLY);
	long i;

	if (fd < 0)
		die(file);
	for (i = 0; i < n; i++)
		if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (i % 4) * 4096) ==
		    MAP_FAILED)
			break;
	printf("%ld mappings\n", i);
	ready();
	while (goes_on(10))
		;
}

/* nanosleep() of the time at the address in %rdi, by code made at run time. */
static const uint8_t nap_code[] = {
	0x55, 0x48, 0x89, 0xe5, 0xb8, 0x23, 0, 0, 0, 0x31, 0xf6, 0x0f, 0x05, 0x5d, 0xc3,
};

static void perfmap(long n)
{
	uint8_t *code = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct timespec nap = { 0, 10000000 };
	char path[64];
	FILE *out;

	if (code == MAP_FAILED)
		die("mmap");
	memcpy(code, nap_code, sizeof(nap_code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	out = fopen(path, "w");
	if (!out)
		die(path);
	fprintf(out, "%lx 1000 attack:nap\n", (unsigned long)code);
	for (long i = 0; i < n; i++)
		fprintf(out, "%lx 10 attack:function_number_%ld\n", 0x10000UL + 16 * (size_t)i, i);
	fclose(out);
	ready();
	do
		((void (*)(struct timespec *))(uintptr_t)code)(&nap);
	while (goes_on(0));
	unlink(path);
}

int main(int argc, char **argv)
{
	const char *name = argc > 2 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 0;

	if (!strcmp(name, "hang") && argc == 4)
		hang(argv[2], argv[3]);
	else if (!strcmp(name, "threads"))
		threads(n);
	else if (!strcmp(name, "forks"))
		forks(n);
	else if (!strcmp(name, "maps") && argc == 4)
		maps(n, argv[3]);
	else if (!strcmp(name, "perfmap"))
		perfmap(n);
	else
		return 2;
	return 0;
}

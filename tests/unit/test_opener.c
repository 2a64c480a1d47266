/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests the processes that open files: an honest one opens what this process would, one that fails
 * harms nobody but its own file, and a file system that hangs costs its own files only.
 * Arguments: programs that open files honestly and that fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fuse.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/base.h"
#include "daemon/host/capabilities.h"
#include "daemon/host/open_file.h"
#include "daemon/host/open_here.h"
#include "daemon/host/opener.h"

/* LONG_NS is for what must succeed, SHORT_NS for what hangs anyway. */
#define LONG_NS	 (20 * NS_PER_S)
#define SHORT_NS (300 * NS_PER_MS)

static const char *honest, *hostile;

static void start(const char *program, int64_t deadline_ns, int64_t pause_ns)
{
	opener_start(&(struct opener_options){ program, deadline_ns, pause_ns });
	assert_true(opener_is_on());
}

static int directory(const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void assert_same(int fd, int expected)
{
	struct stat a, b;

	assert_true(fd >= 0 && expected >= 0);
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(fstat(expected, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(a.st_dev, b.st_dev);
	assert_int_equal(fcntl(fd, F_GETFL), fcntl(expected, F_GETFL));
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	close(expected);
}

/* Opens in the same way with and without processes, and compares. */
static void check_path(int root_fd, const char *path, uint64_t resolve)
{
	struct open_request request = { .kind = OPEN_IN_ROOT, .resolve = resolve };
	int here, there = open_path_in_root(root_fd, path, 0, resolve);

	strcpy(request.path, path);
	here = open_here(&request, root_fd);
	if (here < 0)
		assert_int_equal(there, here);
	else
		assert_same(there, here);
}

static void honest_opens_the_same(void **state)
{
	int root_fd = directory("/"), path_fd;

	start(honest, LONG_NS, 0);
	check_path(root_fd, "etc/passwd", 0);
	check_path(root_fd, "/usr/../etc", RESOLVE_NO_XDEV);
	check_path(root_fd, "proc/self/status", RESOLVE_NO_XDEV); /* another mount: -EXDEV */
	check_path(root_fd, "proc/self/root/etc", 0);		  /* a magic link: -ELOOP */
	check_path(root_fd, "nowhere", 0);
	check_path(-1, "etc/passwd", 0);
	path_fd = open_path_in_root(root_fd, "etc/passwd", 0, 0);
	assert_same(open_path_fd(path_fd, 0),
		    open_here(&(struct open_request){ .kind = OPEN_FD }, path_fd));
	assert_int_equal(open_path_fd(path_fd, O_DIRECTORY), -ENOTDIR);
	close(path_fd);
	close(root_fd);
	opener_stop();
	assert_false(opener_is_on());
}

static void *opens_often(void *failed)
{
	int root_fd = directory("/"), fd;

	for (int i = 0; i < 50; i++) {
		fd = open_path_in_root(root_fd, "etc/passwd", 0, 0);
		if (fd < 0)
			atomic_fetch_add((atomic_int *)failed, 1);
		else
			close(fd);
	}
	close(root_fd);
	return NULL;
}

/* There are fewer processes than threads that want one. */
static void threads_wait_for_a_process(void **state)
{
	pthread_t threads[16];
	atomic_int failed = 0;

	start(honest, LONG_NS, 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, opens_often, &failed), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(failed, 0);
	opener_stop();
}

/* The line of /proc/PID/status with the name `name`. */
static uint64_t status_of(pid_t pid, const char *name, int base)
{
	char path[64], line[256];
	uint64_t value = UINT64_MAX;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			value = strtoull(line + strlen(name) + 1, NULL, base);
	fclose(f);
	return value;
}

/* The process that opens files; this test has no other child. */
static pid_t child(void)
{
	FILE *f = fopen("/proc/thread-self/children", "re");
	int pid = 0;

	if (!f)
		skip();
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	fclose(f);
	return pid;
}

static void honest_may_open_only(void **state)
{
	const uint64_t may = CAPABILITY_BIT(CAP_DAC_READ_SEARCH) & capabilities_permitted();
	int root_fd = directory("/"), fd;
	pid_t pid;

	start(honest, LONG_NS, 0);
	fd = open_path_in_root(root_fd, "etc", 0, 0);
	assert_true(fd >= 0);
	pid = child();
	assert_int_equal(status_of(pid, "CapPrm", 16), may);
	assert_int_equal(status_of(pid, "CapEff", 16), may);
	assert_int_equal(status_of(pid, "NoNewPrivs", 10), 1);
	assert_int_equal(status_of(pid, "Seccomp", 10), 2);
	close(fd);
	close(root_fd);
	opener_stop();
}

/* Even a process that was taken over cannot do more than open files for reading. */
static void sandbox_holds(void **state)
{
	int root_fd = directory("/");

	start(hostile, LONG_NS, 0);
	assert_int_equal(open_path_in_root(root_fd, "escape", 0, 0), -1);
	unlink("/tmp/opener_hostile"); /* it is there only where the kernel has no Landlock */
	close(root_fd);
	opener_stop();
}

/* A process that was forked, such as one that looks up holders of locks, opens files itself. */
static void forked_opens_itself(void **state)
{
	int status;
	pid_t pid;

	start("/nowhere", LONG_NS, 0);
	pid = fork();
	if (!pid)
		_exit(opener_is_on() || open_path_in_root(directory("/"), "etc", 0, 0) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	opener_stop();
}

static void no_program(void **state)
{
	int root_fd = directory("/");

	start("/nowhere", LONG_NS, 0);
	assert_int_equal(open_path_in_root(root_fd, "etc", 0, 0), -EAGAIN);
	assert_int_equal(open_path_in_root(root_fd, "etc", 0, 0), -EAGAIN);
	close(root_fd);
	opener_stop();
}

/* Each nonsense is refused, and the next file is opened by another process. */
static void nonsense_is_refused(void **state)
{
	static const char *const words[] = { "die", "cut", "positive", "both" };
	int root_fd = directory("/"), fd;

	start(hostile, LONG_NS, 0);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		assert_int_equal(open_path_in_root(root_fd, words[i], 0, 0), -EAGAIN);
		fd = open_path_in_root(root_fd, "fine", 0, 0);
		assert_true(fd >= 0);
		close(fd);
	}
	assert_int_equal(open_path_in_root(root_fd, "nothing", 0, 0), -EMFILE);
	close(root_fd);
	opener_stop();
}

/*
 * After a process has hung, its file system is left alone and others are not; it is tried again
 * after a while.
 */
static void hanging_is_remembered(void **state)
{
	int root_fd = directory("/"), proc_fd = directory("/proc"), fd;
	struct opener_stats stats;
	int64_t begun;

	start(hostile, SHORT_NS, 2 * SHORT_NS);
	begun = clock_ns(CLOCK_MONOTONIC);
	assert_int_equal(open_path_in_root(root_fd, "hang", 0, RESOLVE_NO_XDEV), -ETIMEDOUT);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begun >= SHORT_NS);
	opener_stats(&stats);
	assert_int_equal(stats.hung, 1);
	assert_string_equal(stats.place, "hang");
	/* Only "hang" hangs: a file that is refused was not asked for. */
	fd = open_path_in_root(root_fd, "fine", 0, RESOLVE_NO_XDEV);
	if (clock_ns(CLOCK_MONOTONIC) - begun < 3 * SHORT_NS)
		assert_int_equal(fd, -ETIMEDOUT);
	closep(&fd);
	/* A process may be slow to start on a busy host. */
	while ((fd = open_path_in_root(proc_fd, "fine", 0, RESOLVE_NO_XDEV)) == -ETIMEDOUT)
		;
	assert_true(fd >= 0);
	close(fd);
	while ((fd = open_path_in_root(root_fd, "fine", 0, RESOLVE_NO_XDEV)) == -ETIMEDOUT)
		usleep(1000);
	assert_true(fd >= 0);
	close(fd);
	do
		opener_stats(&stats);
	while (stats.hanging);
	close(root_fd);
	close(proc_fd);
	opener_stop();
}

/* A FUSE file system that answers the first request and then reads further ones. */

static void *fuse_serve(void *context)
{
	static _Alignas(struct fuse_in_header) char request[1 << 16];
	const struct fuse_in_header *in = (const void *)request;
	const int fd = *(int *)context;
	struct {
		struct fuse_out_header head;
		struct fuse_init_out init;
	} answer = {
		.head.len = sizeof(answer),
		.init = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096 },
	};

	while (read(fd, request, sizeof(request)) > 0) {
		if (in->opcode != FUSE_INIT)
			continue;
		answer.head.unique = in->unique;
		if (write(fd, &answer, sizeof(answer)) < 0)
			break;
	}
	return NULL;
}

/* Mounts it where only this process sees it. Returns the directory. */
static char *fuse_mount(int *fuse_fd, pthread_t *server)
{
	char *at = strdup("/tmp/test_opener.XXXXXX"), options[128];

	*fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", *fuse_fd);
	if (*fuse_fd < 0 || geteuid() || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || !mkdtemp(at) ||
	    mount("none", at, "fuse", 0, options)) {
		print_message("FUSE cannot be mounted here\n");
		closep(fuse_fd);
		free(at);
		skip();
	}
	assert_int_equal(pthread_create(server, NULL, fuse_serve, fuse_fd), 0);
	return at;
}

/* Makes the file system fail instead of hang, and waits until no process hangs. */
static void fuse_end(char *at, int fuse_fd, pthread_t server)
{
	struct opener_stats stats;

	/* Reading from the descriptor fails from now on, as the mount is gone. */
	assert_int_equal(umount2(at, MNT_FORCE | MNT_DETACH), 0);
	do {
		usleep(1000);
		opener_stats(&stats);
	} while (stats.hanging);
	pthread_join(server, NULL);
	close(fuse_fd);
	rmdir(at);
	free(at);
}

static void kernel_hangs(void **state)
{
	struct opener_stats stats;
	pthread_t server;
	uint64_t hung;
	int fuse_fd, fd, at_fd, root_fd = directory("/");
	char *at = fuse_mount(&fuse_fd, &server);

	at_fd = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(at_fd >= 0);
	start(honest, SHORT_NS, 4 * SHORT_NS);
	/* On a busy host, a process may be late before it gets to the file. */
	do {
		assert_int_equal(open_path_in_root(at_fd, "x", 0, RESOLVE_NO_XDEV), -ETIMEDOUT);
		opener_stats(&stats);
	} while (!stats.hanging);
	hung = stats.hung;
	/* It was killed, but does not end: its file system is left alone for as long as that. */
	usleep(6 * SHORT_NS / NS_PER_US);
	assert_int_equal(open_path_fd(at_fd, O_DIRECTORY), -ETIMEDOUT);
	opener_stats(&stats);
	assert_int_equal(stats.hanging, 1);
	assert_int_equal(stats.hung, hung);
	assert_true(stats.refused > 0);
	while ((fd = open_path_in_root(root_fd, "etc/passwd", 0, RESOLVE_NO_XDEV)) == -ETIMEDOUT)
		;
	assert_true(fd >= 0);
	close(fd);
	fuse_end(at, fuse_fd, server);
	close(at_fd);
	close(root_fd);
	opener_stop();
}

/* When many processes hang, no further one is risked. */
static void kernel_hangs_everywhere(void **state)
{
	char path[64], *at;
	struct opener_stats stats;
	pthread_t server;
	int fuse_fd, fd, root_fd = directory("/");

	at = fuse_mount(&fuse_fd, &server);
	start(honest, SHORT_NS, SHORT_NS);
	do {
		/* A mount of its own counts as another place: a look-up in it may leave it. */
		strcpy(path, "/tmp/test_opener.XXXXXX");
		assert_non_null(mkdtemp(path));
		assert_int_equal(mount(at, path, NULL, MS_BIND, NULL), 0);
		fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(open_path_in_root(fd, "x", 0, 0), -ETIMEDOUT);
		close(fd);
		assert_int_equal(umount2(path, MNT_DETACH), 0);
		rmdir(path);
		opener_stats(&stats);
	} while (stats.hanging < OPENERS_HANGING_MAX);
	assert_int_equal(open_path_in_root(root_fd, "etc/passwd", 0, RESOLVE_NO_XDEV), -EBUSY);
	fuse_end(at, fuse_fd, server);
	while ((fd = open_path_in_root(root_fd, "etc/passwd", 0, RESOLVE_NO_XDEV)) == -ETIMEDOUT)
		;
	assert_true(fd >= 0);
	close(fd);
	close(root_fd);
	opener_stop();
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(honest_opens_the_same),
		cmocka_unit_test(threads_wait_for_a_process),
		cmocka_unit_test(honest_may_open_only),
		cmocka_unit_test(sandbox_holds),
		cmocka_unit_test(forked_opens_itself),
		cmocka_unit_test(no_program),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(hanging_is_remembered),
		cmocka_unit_test(kernel_hangs),
		cmocka_unit_test(kernel_hangs_everywhere),
	};

	if (argc != 3)
		return 1;
	honest = argv[1];
	hostile = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A child process mounts file systems in namespaces of its own; the test looks at them from
 * outside, as stackd does. The FUSE file system has no program that answers: whoever asks it
 * anything hangs, and the alarm ends the test.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/host/open_local.h"
#include "daemon/host/remote_mounts.h"

enum { HANG_S = 20 };

static const char lines[] =
	"22 1 0:9000 / /data rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	"40 22 0:9001 / /srv/a\\040-\\040b rw shared:2 master:3 - nfs4 server:/export rw,hard\n"
	"41 22 0:9002 / /home/u/s rw - fuse.sshfs u@h: rw,user_id=0\n"
	"42 22 8:9003 / /media/w rw - fuseblk /dev/sdb1 rw\n"
	"43 22 0:9004 / /run/a\\040b rw - tmpfs tmpfs rw\n"
	"44 22 0:9005 / /sys/fs/fuse/connections rw - fusectl fusectl rw\n"
	"45 22 0:9006 / /x rw - overlay overlay rw\n"
	"46 22 0:9008 / /9 rw - 9p share rw\n"
	"47 22 0:9009 / /net rw - autofs systemd-1 rw\n"
	"48 22 0:9010 / /v rw - virtiofs v rw\n"
	"49 22 0:9011 / /p rw - proc proc rw\n"
	"50 43 0:9012 / /run/a\\040b rw - nfs over:/it rw\n"
	"51 22 7:9013 / /snap/a ro,nodev,relatime - squashfs /dev/loop1 ro\n"
	"52 22 7:9014 / /media/u/image rw,nosuid,nodev,relatime - ext4 /dev/loop2 rw\n"
	"53 22 0:9015 / /media/u/b rw,nodev,nosuid - btrfs /dev/loop3 rw\n"
	"54 22 8:9016 / /media/u/stick rw,nosuid,nodev - vfat /dev/sdc1 rw\n"
	"55 22 0:9017 / /tmp/t rw,nosuidx - tmpfs tmpfs rw\n"
	"not a line\n46 22 0:9007 / /y rw\n\n";

static void view_fill(struct mount_view *view, bool is_roots)
{
	FILE *in = fmemopen((char *)(uintptr_t)lines, sizeof(lines) - 1, "r");

	assert_non_null(in);
	assert_int_equal(mount_view_read(view, in, is_roots), 0);
	fclose(in);
}

/* Local is what is in the list of types; an overlay only if root has mounted it. */
static void test_types(void **state)
{
	static const unsigned int local[] = { 9000, 9004, 9017 };
	struct remote_mounts *mounts = remote_mounts_new();
	struct mount_view view = mount_view_of(mounts, -1);
	unsigned int minor;

	view_fill(&view, false);
	for (minor = 9000; minor < 9020; minor++)
		assert_int_equal(mount_view_is_remote_dev(&view, makedev(0, minor)),
				 minor != local[0] && minor != local[1] && minor != local[2]);
	assert_true(mount_view_is_remote_dev(&view, makedev(8, 9003)));
	view_fill(&view, true);
	assert_false(mount_view_is_remote_dev(&view, makedev(0, 9006)));
	assert_true(mount_view_is_remote_dev(&view, makedev(0, 9002)));
	assert_false(mount_view_is_remote_point(&view, "/data"));
	assert_true(mount_view_is_remote_point(&view, "/srv/a - b"));
	assert_true(mount_view_is_remote_point(&view, "/run/a b")); /* NFS was mounted over tmpfs */
	assert_true(mount_view_is_remote_point(&view, "/nowhere"));
	mount_view_fini(&view);
	remote_mounts_free(mounts);
}

/* A loop device is remote if it was mounted for a user. */
static void test_loop_devices(void **state)
{
	struct remote_mounts *mounts = remote_mounts_new();
	struct mount_view view = mount_view_of(mounts, -1);

	(void)state;
	view_fill(&view, true);
	assert_false(mount_view_is_remote_dev(&view, makedev(7, 9013)));
	assert_true(mount_view_is_remote_dev(&view, makedev(7, 9014)));
	assert_true(mount_view_is_remote_dev(&view, makedev(0, 9015)));
	assert_false(mount_view_is_remote_dev(&view, makedev(8, 9016)));
	assert_true(mount_view_is_remote_point(&view, "/media/u/image"));
	mount_view_fini(&view);
	remote_mounts_free(mounts);
}

/* The file systems of the root directory and of stackd itself are never remote. */
static void test_own_files_are_read(void **state)
{
	struct remote_mounts *mounts = remote_mounts_new();
	struct mount_view view = mount_view_of(mounts, -1), all = mount_view_of(NULL, -1);
	int self = open("/proc/self/exe", O_PATH), proc = open("/proc/self", O_PATH);
	int memory = memfd_create("test", 0);
	struct stat st;

	assert_int_equal(fstat(self, &st), 0);
	assert_false(mount_view_is_remote_dev(&view, st.st_dev));
	assert_false(mount_view_is_remote(&view, self));
	assert_false(mount_view_is_remote(&view, memory));
	assert_int_equal(fstat(memory, &st), 0);
	assert_false(mount_view_is_remote_dev(&view, st.st_dev));
	assert_true(mount_view_is_remote(&view, proc));
	assert_true(mount_view_is_remote_dev(&view, makedev(0, 99999)));
	assert_true(mount_view_is_remote(&view, 12345));
	assert_false(mount_view_is_remote(&all, proc));
	close(self);
	close(proc);
	close(memory);
	remote_mounts_free(mounts);
}

/* A child with mounts of its own, seen from outside. */
struct sandbox {
	pid_t pid;
	int proc_fd, root_fd, stop_fd;
	struct remote_mounts *mounts;
};

static char dir[64];

static const char *path_of(const char *name)
{
	static char path[4][160];
	static unsigned n;

	n = (n + 1) % 4;
	snprintf(path[n], sizeof(path[n]), "%s%s", dir, name);
	return path[n];
}

static void write_file(const char *path, const char *text)
{
	FILE *out = fopen(path, "w");

	if (!out || fputs(text, out) < 0 || fclose(out))
		_exit(2);
}

static int fuse_mount(const char *path)
{
	int fd = open("/dev/fuse", O_RDWR);
	char options[128];

	if (fd < 0)
		return -errno;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	return mount("none", path, "fuse.disk", 0, options) ? -errno : 0;
}

/* Mounts, in namespaces of its own, what the tests look at, then waits for its end. */
static void child_run(bool is_user, int ready_fd, int stop_fd)
{
	char map[64], options[512], byte;
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(is_user ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS))
		_exit(77);
	if (is_user) {
		write_file("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %u 1", uid);
		write_file("/proc/self/uid_map", map);
		snprintf(map, sizeof(map), "0 %u 1", gid);
		write_file("/proc/self/gid_map", map);
	}
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "tmpfs", 0, NULL) || mkdir(path_of("/lower"), 0755) ||
	    mkdir(path_of("/overlay"), 0755) || mkdir(path_of("/fuse"), 0755) ||
	    mkdir(path_of("/memory"), 0755) || mkdir(path_of("/gone"), 0755) ||
	    mount("none", path_of("/memory"), "tmpfs", 0, NULL) ||
	    mount("none", path_of("/gone"), "tmpfs", 0, NULL))
		_exit(77);
	write_file(path_of("/lower/file"), "x");
	write_file(path_of("/memory/file"), "x");
	write_file(path_of("/gone/file"), "x");
	if (symlink("../fuse/file", path_of("/memory/to_fuse")) ||
	    symlink(path_of("/memory/file"), path_of("/lower/to_file")) ||
	    dup2(open(path_of("/gone/file"), O_RDONLY), 100) < 0 ||
	    umount2(path_of("/gone"), MNT_DETACH))
		_exit(2);
	snprintf(options, sizeof(options), "lowerdir=%s:%s", path_of("/lower"), path_of("/memory"));
	if (mount("none", path_of("/overlay"), "overlay", 0, options) ||
	    fuse_mount(path_of("/fuse")))
		_exit(77);
	if (write(ready_fd, "r", 1) != 1 || read(stop_fd, &byte, 1))
		_exit(2);
	_exit(0);
}

static void sandbox_make(struct sandbox *box, bool is_user)
{
	int ready[2], stop[2], status;
	char path[64], byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC) | pipe2(stop, O_CLOEXEC), 0);
	box->pid = fork();
	assert_true(box->pid >= 0);
	if (!box->pid) {
		close(stop[1]);
		child_run(is_user, ready[1], stop[0]);
	}
	close(ready[1]);
	close(stop[0]);
	if (read(ready[0], &byte, 1) != 1) {
		assert_int_equal(waitpid(box->pid, &status, 0), box->pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 77);
		print_message("no namespaces, no overlay or no /dev/fuse for this user\n");
		skip();
	}
	close(ready[0]);
	box->stop_fd = stop[1];
	snprintf(path, sizeof(path), "/proc/%d", box->pid);
	box->proc_fd = open(path, O_PATH | O_DIRECTORY);
	box->root_fd = openat(box->proc_fd, "root", O_PATH | O_DIRECTORY);
	assert_true(box->proc_fd >= 0 && box->root_fd >= 0);
	box->mounts = remote_mounts_new();
}

static void sandbox_end(struct sandbox *box)
{
	int status;

	close(box->proc_fd);
	close(box->root_fd);
	close(box->stop_fd);
	assert_int_equal(waitpid(box->pid, &status, 0), box->pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	remote_mounts_free(box->mounts);
}

/* Opens a path in the root directory of the sandbox. Returns 0 or a negative errno. */
static int try_open(struct sandbox *box, const char *name)
{
	_cleanup_(mount_view_fini) struct mount_view view =
		mount_view_of(box->mounts, box->proc_fd);
	_cleanup_(closep) int fd = open_local_path(&view, box->root_fd, path_of(name));
	char byte;

	if (fd < 0)
		return fd;
	fd = open_local_file(&view, box->root_fd, path_of(name));
	return fd < 0 ? fd : read(fd, &byte, 1) == 1 ? 0 : -EIO;
}

static void check_sandbox(struct sandbox *box, int overlay)
{
	_cleanup_(mount_view_fini) struct mount_view view =
		mount_view_of(box->mounts, box->proc_fd);
	_cleanup_(closep) int gone_fd = -1;
	char link[32];

	alarm(HANG_S);
	assert_int_equal(try_open(box, "/memory/file"), 0);
	assert_int_equal(try_open(box, "/lower/../memory/./file"), 0);
	assert_int_equal(try_open(box, "/lower/to_file"), 0);
	assert_int_equal(try_open(box, "/memory/nothing"), -ENOENT);
	assert_int_equal(try_open(box, "/memory"), -EINVAL);
	assert_int_equal(try_open(box, "/fuse"), -EREMOTE);
	assert_int_equal(try_open(box, "/fuse/file"), -EREMOTE);
	assert_int_equal(try_open(box, "/memory/to_fuse"), -EREMOTE);
	assert_int_equal(try_open(box, "/memory/../fuse/../memory/file"), -EREMOTE);
	assert_int_equal(try_open(box, "/overlay/file"), overlay);
	/* A file of a file system that is mounted nowhere any more. */
	snprintf(link, sizeof(link), "/proc/%d/fd/100", box->pid);
	gone_fd = open(link, O_PATH);
	assert_true(gone_fd >= 0);
	assert_true(mount_view_is_remote(&view, gone_fd));
	alarm(0);
}

static void test_a_user_mounts(void **state)
{
	struct sandbox box;

	sandbox_make(&box, true);
	check_sandbox(&box, -EREMOTE);
	sandbox_end(&box);
}

static void test_root_mounts(void **state)
{
	struct sandbox box;

	if (geteuid())
		skip();
	sandbox_make(&box, false);
	check_sandbox(&box, 0);
	sandbox_end(&box);
}

/* Mount ids and devices are used again: what was found out must not outlive the mount. */
static void reuse_run(void)
{
	struct remote_mounts *mounts = remote_mounts_new();
	struct mount_view view = mount_view_of(mounts, -1);

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		_exit(77);
	remote_mounts_free(mounts); /* its table was that of the namespace from before */
	view.mounts = mounts = remote_mounts_new();
	alarm(HANG_S);
	for (int i = 0; i < 20; i++) {
		if (mount("none", dir, "tmpfs", 0, NULL))
			_exit(2);
		write_file(path_of("/file"), "x");
		if (mount_view_is_remote_point(&view, dir))
			_exit(3);
		if (umount(dir) || fuse_mount(dir))
			_exit(77);
		if (!mount_view_is_remote_point(&view, dir))
			_exit(4);
		if (umount2(dir, MNT_DETACH))
			_exit(5);
	}
	_exit(0);
}

static void test_ids_are_used_again(void **state)
{
	pid_t pid = geteuid() ? -1 : fork();
	int status;

	if (pid < 0)
		skip();
	if (!pid)
		reuse_run();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int group_setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/remote_mounts_XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int group_teardown(void **state)
{
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_loop_devices),
		cmocka_unit_test(test_own_files_are_read),
		cmocka_unit_test(test_a_user_mounts),
		cmocka_unit_test(test_root_mounts),
		cmocka_unit_test(test_ids_are_used_again),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}

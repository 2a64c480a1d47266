/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/host/capabilities.h"

/*
 * A user and group as which nothing else runs: systemd and Debian leave 65520 to 65533 free. Other
 * programs run as nobody, and each of them could kill, stop or limit a process of that user.
 */
#define UNUSED_ID 65520

#if defined(__x86_64__)
#define SANDBOX_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SANDBOX_ARCH AUDIT_ARCH_AARCH64
#else
#error "define SANDBOX_ARCH: the AUDIT_ARCH_ of this CPU, for the filter of system calls"
#endif

#define LOAD(field)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define ALLOW(nr)    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##nr, 0, 1), RETURN(SECCOMP_RET_ALLOW)
#define REFUSE	     RETURN(SECCOMP_RET_ERRNO | EPERM)
/* Allows a system call if `is_allowed`, an expression of C. */
#define ALLOW_IF(nr, is_allowed)                             \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##nr, 0, 1), \
		RETURN((is_allowed) ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | EPERM)

/* Sets a limit of the process, unless it has a lower one. */
static int limit_set(int which, rlim_t value)
{
	struct rlimit limit;

	if (getrlimit(which, &limit) < 0)
		return -errno;
	if (limit.rlim_max > value)
		limit.rlim_max = value;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(which, &limit) < 0 ? -errno : 0;
}

/* Makes the process forget that it is root, which may open every file of root. */
static int user_drop(void)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(UNUSED_ID, UNUSED_ID, UNUSED_ID) < 0 ||
	    setresuid(UNUSED_ID, UNUSED_ID, UNUSED_ID) < 0)
		return -errno;
	return 0;
}

/* All accesses of the first version of Landlock, which every kernel that has it knows. */
#define ACCESS_ALL ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)
#define ACCESS_READ \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

/*
 * Forbids these accesses to the files of every directory. Does nothing where the kernel has no
 * Landlock.
 */
static void landlock_enter(uint64_t accesses)
{
	const struct landlock_ruleset_attr rules = { .handled_access_fs = accesses };
	_cleanup_(closep) int fd =
		(int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0);

	if (fd >= 0)
		syscall(SYS_landlock_restrict_self, fd, 0);
}

int sandbox_enter(const struct sandbox_limits *limits)
{
	int r = user_drop();

	if (r)
		return r;
	r = capabilities_limit(0);
	if (r)
		return r;
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return -errno;
	/* Without Landlock, the filter of system calls forbids the same. */
	landlock_enter(ACCESS_ALL);
	r = limit_set(RLIMIT_CORE, 0);
	if (r)
		return r;
	r = limit_set(RLIMIT_FSIZE, limits->file_bytes);
	if (r)
		return r;
	if (limits->files) {
		r = limit_set(RLIMIT_NOFILE, limits->files);
		if (r)
			return r;
	}
#ifndef __SANITIZE_ADDRESS__ /* not with AddressSanitizer, which maps terabytes of addresses */
	r = limit_set(RLIMIT_AS, limits->memory_bytes);
	if (r)
		return r;
#endif
	return limit_set(RLIMIT_CPU, limits->cpu_s);
}

/* Sets the filter of system calls. may_open: files may be opened, too. */
static int filter_set(bool may_open)
{
	struct sock_filter filter[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SANDBOX_ARCH, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		ALLOW(read),
		ALLOW(pread64),
		ALLOW(write),
		ALLOW(recvmsg),
		ALLOW(sendmsg),
		ALLOW(close),
		ALLOW(fstat),
		ALLOW(newfstatat), /* this is how glibc's fstat() asks the kernel */
		ALLOW(munmap),
		ALLOW(mremap),
		ALLOW(madvise),
		ALLOW(brk),
		ALLOW(setitimer),
		ALLOW(clock_gettime),
		ALLOW(futex),
		ALLOW(rt_sigreturn),
		ALLOW(restart_syscall),
		ALLOW(exit),
		ALLOW(exit_group),
		ALLOW_IF(openat, may_open),
		ALLOW_IF(openat2, may_open),
		ALLOW_IF(open_by_handle_at, may_open),
		ALLOW_IF(ppoll, may_open),
#ifdef __SANITIZE_ADDRESS__
		ALLOW(mmap),
		ALLOW(sigaltstack),
		ALLOW(sched_yield),
		ALLOW(gettid),
		ALLOW(getpid),
		ALLOW(rt_sigprocmask),
#endif
		/* memory that no file backs and that holds no code */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
		REFUSE,
		LOAD(args[2]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		REFUSE,
		LOAD(args[3]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 1, 0),
		REFUSE,
		RETURN(SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {
		.len = (unsigned short)ARRAY_SIZE(filter),
		.filter = filter,
	};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

int sandbox_close(void)
{
	return filter_set(false);
}

int sandbox_open_only(void)
{
	int r = capabilities_limit(CAPABILITY_BIT(CAP_DAC_READ_SEARCH));

	if (r)
		return r;
	if (prctl(PR_SET_DUMPABLE, 0) < 0)
		return -errno;
	landlock_enter(ACCESS_ALL & ~ACCESS_READ);
	r = limit_set(RLIMIT_CORE, 0);
	if (r)
		return r;
	r = limit_set(RLIMIT_FSIZE, 0);
	if (r)
		return r;
	return filter_set(true);
}

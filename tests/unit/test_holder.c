/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lets processes and threads wait for locks, and asks who holds them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/holder/descriptors.h"
#include "daemon/holder/holder.h"
#include "daemon/holder/inet_table.h"
#include "daemon/host/cgroup.h"
#include "daemon/host/fd_message.h"
#include "daemon/host/file_lock.h"
#include "daemon/host/procfs.h"

static char path[] = "/tmp/stackd-holder-XXXXXX";

/* A look-up of this process, which there is not, hangs. */
enum { HANGING = 4194303 };

void __real_holder_look_up(struct holder_search *search, const struct holder_question *question,
			   struct holder_answer *out);
void __wrap_holder_look_up(struct holder_search *search, const struct holder_question *question,
			   struct holder_answer *out);

void __wrap_holder_look_up(struct holder_search *search, const struct holder_question *question,
			   struct holder_answer *out)
{
	while (question->pid == HANGING)
		pause();
	__real_holder_look_up(search, question, out);
}

/* Returns the start time of a thread of a process, in ns since boot. */
static uint64_t start_of(pid_t pid, pid_t tid)
{
	char name[64], text[1024] = "";
	unsigned long long ticks = 0;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/stat", pid, tid);
	file = fopen(name, "re");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	assert_int_equal(sscanf(strrchr(text, ')') + 1,
				" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
				"%*d %*d %*d %*d %llu",
				&ticks),
			 1);
	return procfs_ticks_ns(ticks);
}

/* Waits until the thread is in this system call. */
static void wait_for_call(pid_t pid, pid_t tid, long number)
{
	char name[64], text[256];
	long at = -1;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/syscall", pid, tid);
	while (at != number) {
		FILE *file = fopen(name, "re");

		assert_non_null(file);
		if (!fgets(text, sizeof(text), file) || sscanf(text, "%ld", &at) != 1)
			at = -1;
		fclose(file);
		usleep(1000);
	}
}

static struct holder_answer look_up(pid_t pid, pid_t tid, enum wait_reason reason)
{
	const struct holder_question question = {
		.pid = pid, .tid = tid, .start_boot_ns = start_of(pid, tid), .reason = reason
	};
	struct holder_search *search =
		holder_search_new(clock_ns(CLOCK_MONOTONIC) + 60 * NS_PER_S, -1);
	struct holder_answer answer = {};

	assert_non_null(search);
	holder_look_up(search, &question, &answer);
	holder_search_free(search);
	assert_true(answer.is_known);
	return answer;
}

static void assert_held_by(struct holder_answer *answer, pid_t pid, pid_t tid)
{
	if (answer->unknown)
		fail_msg("not known: %s", answer->unknown);
	assert_int_equal(answer->n, 1);
	assert_int_equal(answer->holders[0].pid, pid);
	assert_int_equal(answer->holders[0].tid, tid);
	assert_string_not_equal(answer->holders[0].comm, "");
	holder_answers_fini(answer, 1);
}

static void assert_unknown(struct holder_answer *answer, const char *why)
{
	assert_int_equal(answer->n, 0);
	assert_non_null(answer->unknown);
	if (!strstr(answer->unknown, why))
		fail_msg("%s, not %s", answer->unknown, why);
	holder_answers_fini(answer, 1);
}

/* Returns a child process that does something; it is killed by child_end(). */
static pid_t child_start(int (*run)(void))
{
	pid_t parent = getpid(), pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The parent may have ended before that. */
		_exit(getppid() == parent ? run() : 0);
	}
	return pid;
}

static void child_end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A waiter gives up the locks of open files that it has inherited. */
static int run_flock(void)
{
	close_range(3, ~0U, 0);
	return flock(open(path, O_RDWR | O_CLOEXEC), LOCK_EX);
}

static int run_setlk(int command)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 5 };

	close_range(3, ~0U, 0);
	return fcntl(open(path, O_RDWR | O_CLOEXEC), command, &lock);
}

static int run_posix(void)
{
	return run_setlk(F_SETLKW);
}

static int run_ofd(void)
{
	return run_setlk(F_OFD_SETLKW);
}

/* The kernel has the lock, and the file is on its way to a process: nobody has it open. */
static void check_flock_of_nobody(void)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), pair[2];
	struct holder_answer answer;
	char byte = 0;
	pid_t waiter;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	waiter = child_start(run_flock);
	wait_for_call(waiter, waiter, SYS_flock);
	assert_int_equal(fd_message_send(pair[0], &byte, 1, &fd, 1), 0);
	close(fd);
	answer = look_up(waiter, waiter, REASON_FLOCK);
	assert_unknown(&answer, "no process was found");
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(waitpid(waiter, NULL, 0), waiter);
}

static void test_flock(void **state)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct holder_answer answer;
	pid_t waiter, heir;

	assert_int_equal(flock(fd, LOCK_EX), 0);
	waiter = child_start(run_flock);
	wait_for_call(waiter, waiter, SYS_flock);
	answer = look_up(waiter, waiter, REASON_FLOCK);
	assert_string_equal(answer.object, path);
	assert_held_by(&answer, getpid(), getpid());

	/* A child has the file, too. It is the only one when this process has closed it. */
	heir = child_start(pause);
	answer = look_up(waiter, waiter, REASON_FLOCK);
	assert_null(answer.unknown);
	assert_int_equal(answer.n, 2);
	assert_int_equal(answer.holders[0].pid, getpid());
	assert_int_equal(answer.holders[1].pid, heir);
	holder_answers_fini(&answer, 1);
	close(fd);
	answer = look_up(waiter, waiter, REASON_FLOCK);
	assert_held_by(&answer, heir, heir);

	/* Another reason, or another start: this thread does not wait for that. */
	answer = look_up(waiter, waiter, REASON_MUTEX);
	assert_unknown(&answer, "went on");
	child_end(heir);
	assert_int_equal(waitpid(waiter, NULL, 0), waiter);
	check_flock_of_nobody();
}

/* As many bytes of /proc/locks are read, and behind them locks of others for ever; 0: all of it. */
static size_t locks_bytes;

int __real_proc_text_read(int dir_fd, const char *name, char *buffer, size_t size);
int __wrap_proc_text_read(int dir_fd, const char *name, char *buffer, size_t size);

int __wrap_proc_text_read(int dir_fd, const char *name, char *buffer, size_t size)
{
	static const char line[] = "1: POSIX  ADVISORY  WRITE 1 00:01:99 0 EOF\n";
	int r = __real_proc_text_read(dir_fd, name, buffer, size);
	size_t at;

	if (r || !locks_bytes || strcmp(name, "/proc/locks") != 0)
		return r;
	for (at = strnlen(buffer, locks_bytes); at + 1 < size; at++)
		buffer[at] = line[at % strlen(line)];
	buffer[at] = '\0';
	return 0;
}

/* Where the kernel lists more locks than are read, nothing is said about those that are not. */
static void test_many_locks(void **state)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct holder_answer answer;
	pid_t waiter;

	assert_int_equal(flock(fd, LOCK_EX), 0);
	waiter = child_start(run_flock);
	wait_for_call(waiter, waiter, SYS_flock);
	locks_bytes = 1;
	answer = look_up(waiter, waiter, REASON_FLOCK);
	assert_unknown(&answer, "more locks than stackd reads");
	locks_bytes = 1 << 19;
	answer = look_up(waiter, waiter, REASON_FLOCK);
	assert_int_equal(answer.n, 1);
	assert_int_equal(answer.holders[0].pid, getpid());
	assert_non_null(strstr(answer.unknown, "more locks than stackd reads"));
	holder_answers_fini(&answer, 1);
	locks_bytes = 0;
	close(fd);
	assert_int_equal(waitpid(waiter, NULL, 0), waiter);
}

static void test_fcntl(void **state)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 12, .l_len = 90 };
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct holder_answer answer;
	pid_t waiter;

	assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
	waiter = child_start(run_posix);
	wait_for_call(waiter, waiter, SYS_fcntl);
	answer = look_up(waiter, waiter, REASON_FCNTL);
	assert_string_equal(answer.object, path);
	assert_held_by(&answer, getpid(), getpid());
	child_end(waiter);
	lock.l_type = F_UNLCK;
	assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);

	/* A lock of an open file names no process. */
	lock.l_type = F_WRLCK;
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	waiter = child_start(run_ofd);
	wait_for_call(waiter, waiter, SYS_fcntl);
	answer = look_up(waiter, waiter, REASON_FCNTL);
	assert_held_by(&answer, getpid(), getpid());
	child_end(waiter);
	close(fd);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *thread_lock(void *tid)
{
	__atomic_store_n((pid_t *)tid, gettid(), __ATOMIC_RELEASE);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static pthread_t thread_start(void *(*run)(void *), pid_t *tid_out)
{
	pid_t tid = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, &tid), 0);
	while (!(*tid_out = __atomic_load_n(&tid, __ATOMIC_ACQUIRE)))
		usleep(1000);
	wait_for_call(getpid(), *tid_out, SYS_futex);
	return thread;
}

static pthread_t waiter_start(pid_t *tid_out)
{
	return thread_start(thread_lock, tid_out);
}

static void test_mutex(void **state)
{
	int owner;
	pid_t waiter, stranger = child_start(pause);
	struct holder_answer answer;
	pthread_t thread;
	char address[32];

	pthread_mutex_lock(&mutex);
	thread = waiter_start(&waiter);
	snprintf(address, sizeof(address), "%p", (void *)&mutex);
	answer = look_up(getpid(), waiter, REASON_MUTEX);
	assert_string_equal(answer.object, address);
	assert_held_by(&answer, getpid(), getpid());

	/* Whatever a program writes there, no other process is blamed. */
	owner = mutex.__data.__owner;
	mutex.__data.__owner = stranger;
	answer = look_up(getpid(), waiter, REASON_MUTEX);
	assert_unknown(&answer, "no thread of the process");
	mutex.__data.__owner = INT32_MAX;
	answer = look_up(getpid(), waiter, REASON_MUTEX);
	assert_unknown(&answer, "no thread of the process");
	mutex.__data.__owner = 0;
	answer = look_up(getpid(), waiter, REASON_MUTEX);
	assert_unknown(&answer, "no owner");
	mutex.__data.__owner = owner;
	/* The word of musl has the owner and a bit: it is no lock of glibc, whatever follows. */
	mutex.__data.__lock = (int)(0x80000000U | (unsigned int)getpid());
	answer = look_up(getpid(), waiter, REASON_MUTEX);
	assert_unknown(&answer, "no owner");
	mutex.__data.__lock = 2;
	mutex.__data.__kind = 0x4000;
	answer = look_up(getpid(), waiter, REASON_MUTEX);
	assert_unknown(&answer, "none of those of glibc");
	mutex.__data.__kind = 0;

	pthread_mutex_unlock(&mutex);
	assert_int_equal(pthread_join(thread, NULL), 0);
	child_end(stranger);
}

static pthread_mutex_t *shared_mutex;

static int run_lock_shared(void)
{
	return pthread_mutex_lock(shared_mutex);
}

/* Who holds a mutex in shared memory is another process, which has that memory, too. */
static void test_shared_mutex(void **state)
{
	int robust, owner;

	shared_mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared_mutex, MAP_FAILED);
	for (robust = 0; robust < 2; robust++) {
		struct holder_answer answer;
		pthread_mutexattr_t attr;
		pid_t waiter;

		pthread_mutexattr_init(&attr);
		pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
		pthread_mutexattr_setrobust(&attr,
					    robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
		assert_int_equal(pthread_mutex_init(shared_mutex, &attr), 0);
		assert_int_equal(pthread_mutex_lock(shared_mutex), 0);
		waiter = child_start(run_lock_shared);
		wait_for_call(waiter, waiter, SYS_futex);
		answer = look_up(waiter, waiter, REASON_MUTEX);
		assert_held_by(&answer, getpid(), getpid());
		/* Process 1 does not have that memory. */
		owner = shared_mutex->__data.__owner;
		shared_mutex->__data.__owner = 1;
		answer = look_up(waiter, waiter, REASON_MUTEX);
		assert_unknown(&answer, robust ? "none of those of glibc" : "names no thread");
		shared_mutex->__data.__owner = owner;
		child_end(waiter);
		pthread_mutex_unlock(shared_mutex);
	}
	munmap(shared_mutex, 4096);
}

/* A robust mutex of one process is waited for as if it were shared. */
static void test_robust_mutex(void **state)
{
	struct holder_answer answer;
	pthread_mutexattr_t attr;
	pthread_t thread;
	pid_t waiter;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	assert_int_equal(pthread_mutex_init(&mutex, &attr), 0);
	assert_int_equal(pthread_mutex_lock(&mutex), 0);
	thread = waiter_start(&waiter);
	answer = look_up(getpid(), waiter, REASON_MUTEX);
	assert_held_by(&answer, getpid(), getpid());
	pthread_mutex_unlock(&mutex);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(pthread_mutex_init(&mutex, NULL), 0);
}

/* The words of a mutex of musl that is held and waited for: type, lock, waiters. */
static int musl[10] = { 0, (int)0x80000010U, 1 };

static void *thread_wait_musl(void *tid)
{
	int value = musl[1];

	__atomic_store_n((pid_t *)tid, gettid(), __ATOMIC_RELEASE);
	syscall(SYS_futex, &musl[1], FUTEX_WAIT_PRIVATE, value, NULL);
	return NULL;
}

/* The lock of another library is said to be that. */
static void test_musl_mutex(void **state)
{
	struct holder_answer answer;
	pid_t waiter;
	pthread_t thread = thread_start(thread_wait_musl, &waiter);

	answer = look_up(getpid(), waiter, REASON_MUTEX);
	assert_unknown(&answer, "none of those of glibc");
	while (!syscall(SYS_futex, &musl[1], FUTEX_WAKE_PRIVATE, 1))
		usleep(1000);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void test_pi_mutex(void **state)
{
	pthread_mutexattr_t attributes;
	struct holder_answer answer;
	pthread_t thread;
	pid_t waiter;

	pthread_mutexattr_init(&attributes);
	assert_int_equal(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT), 0);
	pthread_mutex_init(&mutex, &attributes);
	pthread_mutex_lock(&mutex);
	thread = waiter_start(&waiter);
	answer = look_up(getpid(), waiter, REASON_PI_MUTEX);
	assert_held_by(&answer, getpid(), getpid());
	pthread_mutex_unlock(&mutex);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_mutex_init(&mutex, NULL);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static void *thread_read(void *tid)
{
	__atomic_store_n((pid_t *)tid, gettid(), __ATOMIC_RELEASE);
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	return NULL;
}

static void *thread_write(void *tid)
{
	__atomic_store_n((pid_t *)tid, gettid(), __ATOMIC_RELEASE);
	pthread_rwlock_wrlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	return NULL;
}

/* glibc records who writes, but not who reads. */
static void test_rwlock(void **state)
{
	void *(*const waiters[])(void *) = { thread_read, thread_write };
	struct holder_answer answer;
	pthread_t thread;
	char address[32];
	pid_t waiter;
	int writer;

	snprintf(address, sizeof(address), "%p", (void *)&rwlock);
	for (size_t i = 0; i < ARRAY_SIZE(waiters); i++) {
		pthread_rwlock_wrlock(&rwlock);
		thread = thread_start(waiters[i], &waiter);
		answer = look_up(getpid(), waiter, REASON_RWLOCK);
		assert_string_equal(answer.object, address);
		assert_held_by(&answer, getpid(), getpid());
		writer = rwlock.__data.__cur_writer;
		rwlock.__data.__cur_writer = INT32_MAX;
		answer = look_up(getpid(), waiter, REASON_RWLOCK);
		assert_unknown(&answer, "no thread of the process");
		rwlock.__data.__cur_writer = writer;
		pthread_rwlock_unlock(&rwlock);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	pthread_rwlock_rdlock(&rwlock);
	thread = thread_start(thread_write, &waiter);
	answer = look_up(getpid(), waiter, REASON_RWLOCK);
	assert_unknown(&answer, "threads that read");
	pthread_rwlock_unlock(&rwlock);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static pthread_t joined;

static void *thread_join(void *tid)
{
	__atomic_store_n((pid_t *)tid, gettid(), __ATOMIC_RELEASE);
	pthread_join(joined, NULL);
	return NULL;
}

static void test_join(void **state)
{
	pid_t waiter, joiner;
	struct holder_answer answer;
	pthread_t thread;

	pthread_mutex_lock(&mutex);
	joined = waiter_start(&waiter);
	thread = thread_start(thread_join, &joiner);
	answer = look_up(getpid(), joiner, REASON_JOIN);
	assert_held_by(&answer, getpid(), waiter);
	pthread_mutex_unlock(&mutex);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* The two ends that a child and this process use. */
static int ends[2];

static int run_read_pipe(void)
{
	char byte;

	close(ends[1]);
	return read(ends[0], &byte, 1) == 1;
}

static int run_write_pipe(void)
{
	static char bytes[1 << 20];

	close(ends[0]);
	return write(ends[1], bytes, sizeof(bytes)) < 0;
}

static void test_pipe(void **state)
{
	struct holder_answer answer;
	char name[64];
	struct stat st;
	pid_t child;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fstat(ends[0], &st), 0);
	snprintf(name, sizeof(name), "pipe %llu", (unsigned long long)st.st_ino);
	child = child_start(run_read_pipe);
	wait_for_call(child, child, SYS_read);
	answer = look_up(child, child, REASON_PIPE_READ);
	assert_string_equal(answer.object, name);
	assert_held_by(&answer, getpid(), getpid());
	child_end(child);

	child = child_start(run_write_pipe);
	wait_for_call(child, child, SYS_write);
	answer = look_up(child, child, REASON_PIPE_WRITE);
	assert_held_by(&answer, getpid(), getpid());
	child_end(child);
	close(ends[0]);
	close(ends[1]);
}

/* A process that reads from a pipe of which it has both ends itself. */
static int run_own_pipe(void)
{
	char byte;

	return pipe2(ends, O_CLOEXEC) || read(ends[0], &byte, 1) == 1;
}

static void test_own_pipe(void **state)
{
	pid_t child = child_start(run_own_pipe);
	struct holder_answer answer;

	wait_for_call(child, child, SYS_read);
	answer = look_up(child, child, REASON_PIPE_READ);
	assert_unknown(&answer, "only the process itself");
	child_end(child);
}

static char fifo[sizeof(path) + 8];

static int run_open_fifo(void)
{
	return open(fifo, O_RDONLY | O_CLOEXEC) < 0;
}

static int run_read_fifo(void)
{
	int fd = open(fifo, O_RDONLY | O_CLOEXEC);
	char byte;

	close_range(3, (unsigned int)fd - 1, 0);
	return read(fd, &byte, 1) == 1;
}

static void test_fifo(void **state)
{
	struct holder_answer answer;
	pid_t child, decoy;
	int fd;

	snprintf(fifo, sizeof(fifo), "%s.fifo", path);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	child = child_start(run_open_fifo);
	wait_for_call(child, child, SYS_openat);
	answer = look_up(child, child, REASON_FIFO_OPEN);
	assert_string_equal(answer.object, fifo);
	assert_unknown(&answer, "no process");
	child_end(child);

	child = child_start(run_read_fifo);
	fd = open(fifo, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	wait_for_call(child, child, SYS_read);
	/* Another process reads, too: it has not the other end. */
	decoy = child_start(run_read_fifo);
	wait_for_call(decoy, decoy, SYS_read);
	answer = look_up(child, child, REASON_PIPE_READ);
	assert_string_equal(answer.object, fifo);
	assert_held_by(&answer, getpid(), getpid());
	child_end(decoy);
	child_end(child);
	close(fd);
	unlink(fifo);
}

static mqd_t queue;

static int run_mq_receive(void)
{
	char message[16];

	return mq_receive(queue, message, sizeof(message), NULL) < 0;
}

static void test_mq(void **state)
{
	struct mq_attr attributes = { .mq_maxmsg = 1, .mq_msgsize = 16 };
	struct holder_answer answer;
	pid_t child, decoy;
	char name[64];

	snprintf(name, sizeof(name), "/stackd-holder-%d", getpid());
	queue = mq_open(name, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600, &attributes);
	if (queue < 0)
		skip();
	/* Another process receives, too: it has not the other end. */
	decoy = child_start(run_mq_receive);
	child = child_start(run_mq_receive);
	close(queue);
	wait_for_call(child, child, SYS_mq_timedreceive);
	answer = look_up(child, child, REASON_MQ);
	assert_unknown(&answer, "no process was found");
	queue = mq_open(name, O_WRONLY | O_CLOEXEC);
	answer = look_up(child, child, REASON_MQ);
	assert_non_null(strstr(answer.object, name));
	assert_held_by(&answer, getpid(), getpid());
	mq_unlink(name);
	close(queue);
	child_end(decoy);
	child_end(child);
}

/* A semaphore set and a message queue of System V. */
static int semaphores, messages;

static int run_semop(void)
{
	struct sembuf take = { .sem_num = 1, .sem_op = -1 };

	return semop(semaphores, &take, 1);
}

static void test_semaphore(void **state)
{
	struct holder_answer answer;
	char name[128];
	pid_t child;

	semaphores = semget(IPC_PRIVATE, 2, 0600);
	if (semaphores < 0)
		skip();
	snprintf(name, sizeof(name), "semaphore 1 of set %d, changed last by pid %d", semaphores,
		 getpid());
	assert_int_equal(semctl(semaphores, 1, SETVAL, 1), 0);
	/* This process takes the semaphore, and the child that waits comes after it. */
	assert_int_equal(run_semop(), 0);
	child = child_start(run_semop);
	wait_for_call(child, child, SYS_semtimedop);
	answer = look_up(child, child, REASON_SYSV_SEM);
	assert_string_equal(answer.object, name);
	assert_unknown(&answer, "no owner");
	child_end(child);

	/* The last one to take it has ended, and has not given it back. */
	assert_int_equal(semctl(semaphores, 1, SETVAL, 1), 0);
	child = child_start(run_semop);
	assert_int_equal(waitpid(child, NULL, 0), child);
	child = child_start(run_semop);
	wait_for_call(child, child, SYS_semtimedop);
	answer = look_up(child, child, REASON_SYSV_SEM);
	assert_null(strstr(answer.object, "changed"));
	assert_unknown(&answer, "no owner");
	semctl(semaphores, 0, IPC_RMID);
	child_end(child);
}

static int run_msgrcv(void)
{
	char message[64];

	return (int)msgrcv(messages, message, 1, 0, 0);
}

static void test_message(void **state)
{
	struct holder_answer answer;
	char name[64];
	pid_t child;

	messages = msgget(IPC_PRIVATE, 0600);
	if (messages < 0)
		skip();
	snprintf(name, sizeof(name), "message queue %d", messages);
	child = child_start(run_msgrcv);
	wait_for_call(child, child, SYS_msgrcv);
	answer = look_up(child, child, REASON_MSGRCV);
	assert_string_equal(answer.object, name);
	assert_unknown(&answer, "any program may send");
	msgctl(messages, IPC_RMID, NULL);
	child_end(child);
}

/* The name of a terminal, whose master is ends[0]. */
static char terminal[64];

static int run_read_terminal(void)
{
	char byte;

	close_range(3, ~0U, 0);
	return read(open(terminal, O_RDONLY | O_NOCTTY | O_CLOEXEC), &byte, 1) == 1;
}

static int run_read_controlling(void)
{
	char byte;

	close_range(3, ~0U, 0);
	setsid();
	open(terminal, O_RDONLY);
	return read(open("/dev/tty", O_RDONLY | O_CLOEXEC), &byte, 1) == 1;
}

static int run_read_master(void)
{
	char byte;

	return read(ends[0], &byte, 1) == 1;
}

static void test_terminal(void **state)
{
	char name[sizeof(terminal) + 32];
	int other = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
	struct holder_answer answer;
	pid_t child, decoy;

	/* Another process has the master of another terminal. */
	decoy = child_start(pause);
	ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (ends[0] < 0 || unlockpt(ends[0]) || ptsname_r(ends[0], terminal, sizeof(terminal)))
		skip();
	snprintf(name, sizeof(name), "terminal %s", terminal);
	child = child_start(run_read_terminal);
	wait_for_call(child, child, SYS_read);
	answer = look_up(child, child, REASON_TTY_READ);
	assert_string_equal(answer.object, name);
	assert_held_by(&answer, getpid(), getpid());
	child_end(child);

	child = child_start(run_read_controlling);
	wait_for_call(child, child, SYS_read);
	answer = look_up(child, child, REASON_TTY_READ);
	assert_string_equal(answer.object, name);
	assert_held_by(&answer, getpid(), getpid());
	child_end(child);

	/* The other way round: one reads what the programs in the terminal print. */
	slave = open(terminal, O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	child = child_start(run_read_master);
	wait_for_call(child, child, SYS_read);
	answer = look_up(child, child, REASON_TTY_READ);
	assert_non_null(strstr(answer.object, ", master"));
	assert_held_by(&answer, getpid(), getpid());
	child_end(child);
	close(slave);
	child_end(decoy);
	close(ends[0]);
	close(other);
}

static int run_read_in_own_mounts(void)
{
	return unshare(CLONE_NEWNS) < 0 ? 0 : run_read_terminal();
}

/* A program in a container has the slave, and who started the container the master. */
static void test_terminal_of_container(void **state)
{
	int master = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct holder_answer answer;
	pid_t child;

	if (geteuid() || master < 0 || unlockpt(master) ||
	    ptsname_r(master, terminal, sizeof(terminal)))
		skip();
	child = child_start(run_read_in_own_mounts);
	wait_for_call(child, child, SYS_read);
	answer = look_up(child, child, REASON_TTY_READ);
	assert_held_by(&answer, getpid(), getpid());
	child_end(child);
	close(master);
}

static int run_open_leased(void)
{
	close_range(3, ~0U, 0);
	return open(path, O_RDWR | O_CLOEXEC) < 0;
}

static int run_lease(void)
{
	signal(SIGIO, SIG_IGN);
	if (fcntl(open(path, O_RDONLY | O_CLOEXEC), F_SETLEASE, F_RDLCK) < 0)
		return 0;
	return pause();
}

/* The kernel lists who waits behind one of a file's leases only; all have to be given back. */
static void test_shared_lease(void **state)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct holder_answer answer;
	pid_t child, other;

	signal(SIGIO, SIG_IGN);
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
		skip();
	other = child_start(run_lease);
	wait_for_call(other, other, SYS_pause);
	child = child_start(run_open_leased);
	wait_for_call(child, child, SYS_openat);
	answer = look_up(child, child, REASON_LEASE);
	assert_int_equal(answer.n, 2);
	assert_true(answer.holders[0].pid == other || answer.holders[1].pid == other);
	holder_answers_fini(&answer, 1);
	child_end(child);
	child_end(other);
	close(fd);
	signal(SIGIO, SIG_DFL);
}

static void test_lease(void **state)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct holder_answer answer;
	pid_t child;

	signal(SIGIO, SIG_IGN);
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		skip();
	child = child_start(run_open_leased);
	wait_for_call(child, child, SYS_openat);
	answer = look_up(child, child, REASON_LEASE);
	assert_string_equal(answer.object, path);
	assert_held_by(&answer, getpid(), getpid());
	child_end(child);
	close(fd);
	signal(SIGIO, SIG_DFL);
}

static int run_eventfd(void)
{
	uint64_t value;

	return read(ends[0], &value, sizeof(value)) < 0;
}

static void test_eventfd(void **state)
{
	int other = eventfd(0, EFD_CLOEXEC);
	struct holder_answer answer;
	pid_t child;

	ends[0] = eventfd(0, EFD_CLOEXEC);
	child = child_start(run_eventfd);
	wait_for_call(child, child, SYS_read);
	answer = look_up(child, child, REASON_EVENTFD);
	assert_memory_equal(answer.object, "eventfd ", 8);
	assert_held_by(&answer, getpid(), getpid());
	close(ends[0]);
	/* This process still has another one. */
	answer = look_up(child, child, REASON_EVENTFD);
	assert_unknown(&answer, "only the process itself");
	close(other);
	child_end(child);
}

static int run_receive(void)
{
	char byte;

	close(ends[1]);
	return recv(ends[0], &byte, 1, 0) == 1;
}

/* Makes a child wait for this end of a pair, and expects this process at the other one. */
static char *assert_receives_from_here(enum wait_reason reason)
{
	pid_t child = child_start(run_receive);
	struct holder_answer answer;
	char *object;

	close(ends[0]);
	wait_for_call(child, child, SYS_recvfrom);
	answer = look_up(child, child, reason);
	if (answer.unknown)
		fail_msg("not known: %s", answer.unknown);
	object = strdup(answer.object);
	assert_held_by(&answer, getpid(), getpid());
	child_end(child);
	close(ends[1]);
	return object;
}

static void test_unix_socket(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char name[sizeof(path) + 64], *object;
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	object = assert_receives_from_here(REASON_UNIX);
	assert_memory_equal(object, "Unix socket ", 12);
	free(object);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	object = assert_receives_from_here(REASON_REQUEST);
	assert_memory_equal(object, "Unix socket ", 12);
	free(object);

	/* A client has no name; its server has one. */
	snprintf(address.sun_path, sizeof(address.sun_path), "%s.sock", path);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	ends[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(ends[0], (struct sockaddr *)&address, sizeof(address)), 0);
	ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	object = assert_receives_from_here(REASON_UNIX);
	snprintf(name, sizeof(name), "Unix socket %s.sock", path);
	assert_string_equal(object, name);
	free(object);
	unlink(address.sun_path);
}

static int run_poll(void)
{
	struct pollfd one = { .fd = ends[0], .events = POLLIN };

	close(ends[1]);
	return poll(&one, 1, -1) == 1;
}

static int run_poll_two(void)
{
	struct pollfd two[] = { { .fd = ends[0], .events = POLLIN }, { .fd = ends[1] } };

	return poll(two, 2, -1) == 1;
}

static int run_select(void)
{
	fd_set set, other;

	close(ends[1]);
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	other = set;
	return select(ends[0] + 1, &set, NULL, &other, NULL) == 1;
}

static int run_select_two(void)
{
	fd_set set, other;

	FD_ZERO(&set);
	FD_ZERO(&other);
	FD_SET(ends[0], &set);
	FD_SET(ends[1], &other);
	return select(ends[1] + 1, &set, NULL, &other, NULL) == 1;
}

/* A wait for events of one socket names it; nothing is said of one for those of several. */
static void test_events(void **state)
{
	static const struct {
		int (*one)(void), (*two)(void);
		enum wait_reason reason;
		long call;
	} cases[] = {
		{ run_poll, run_poll_two, REASON_POLL, SYS_poll },
		{ run_select, run_select_two, REASON_SELECT, SYS_pselect6 },
		{ run_poll, run_poll_two, REASON_REQUEST, SYS_poll },
	};
	struct holder_answer answer;
	pid_t child;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		child = child_start(cases[i].two);
		wait_for_call(child, child, cases[i].call);
		answer = look_up(child, child, cases[i].reason);
		assert_true(answer.is_known && !answer.object && !answer.unknown && !answer.n);
		child_end(child);
		child = child_start(cases[i].one);
		close(ends[0]);
		wait_for_call(child, child, cases[i].call);
		answer = look_up(child, child, cases[i].reason);
		assert_memory_equal(answer.object, "Unix socket ", 12);
		assert_held_by(&answer, getpid(), getpid());
		child_end(child);
		close(ends[1]);
	}
}

static int run_accept(void)
{
	return accept4(ends[0], NULL, NULL, SOCK_CLOEXEC) < 0;
}

static void test_tcp_socket(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct holder_answer answer;
	char port[64], *object;
	pid_t child;

	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	snprintf(port, sizeof(port), " to 127.0.0.1:%u, established", ntohs(address.sin_port));

	ends[0] = listener;
	child = child_start(run_accept);
	wait_for_call(child, child, SYS_accept4);
	answer = look_up(child, child, REASON_ACCEPT);
	assert_non_null(strstr(answer.object, ", listening"));
	assert_unknown(&answer, "any program");
	child_end(child);

	ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(ends[0], (struct sockaddr *)&address, sizeof(address)), 0);
	ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	object = assert_receives_from_here(REASON_TCP);
	assert_memory_equal(object, "TCP 127.0.0.1:", 14);
	assert_non_null(strstr(object, port));
	assert_non_null(strstr(object, ", 0 bytes unread, 0 unacked"));
	free(object);
}

static void test_udp_socket(void **state)
{
	struct sockaddr_in6 address[2] = { { .sin6_family = AF_INET6,
					     .sin6_addr = IN6ADDR_LOOPBACK_INIT } };
	socklen_t size = sizeof(address[0]);
	char *object;

	for (size_t i = 0; i < 2; i++) {
		address[i] = address[0];
		address[i].sin6_port = 0;
		ends[i] = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (bind(ends[i], (struct sockaddr *)&address[i], size) < 0) {
			close(ends[i]);
			skip();
		}
		assert_int_equal(getsockname(ends[i], (struct sockaddr *)&address[i], &size), 0);
	}
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(connect(ends[i], (struct sockaddr *)&address[!i], size), 0);
	object = assert_receives_from_here(REASON_UDP);
	assert_memory_equal(object, "UDP [::1]:", 10);
	free(object);
}

/* The forms in which run_wait() waits for the second one of its two children. */
enum wait_form {
	FORM_WAIT_PID,
	FORM_WAIT_GROUP,
	FORM_WAIT_OWN_GROUP,
	FORM_WAITID_PID,
	FORM_WAITID_GROUP,
	FORM_WAITID_PIDFD,
	FORM_WAIT_ANY
};

static enum wait_form form;

static int run_wait(void)
{
	pid_t other, child;
	siginfo_t info;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	other = child_start(pause);
	setpgid(other, other);
	child = child_start(pause);
	if (form == FORM_WAIT_OWN_GROUP) {
		setpgid(0, 0);
		setpgid(child, getpid());
	} else {
		setpgid(child, child);
	}
	switch (form) {
	case FORM_WAIT_PID:
		return waitpid(child, NULL, 0);
	case FORM_WAIT_GROUP:
		return waitpid(-child, NULL, 0);
	case FORM_WAIT_OWN_GROUP:
		return waitpid(0, NULL, 0);
	case FORM_WAITID_PID:
		return waitid(P_PID, (id_t)child, &info, WEXITED);
	case FORM_WAITID_GROUP:
		return waitid(P_PGID, (id_t)child, &info, WEXITED);
	case FORM_WAITID_PIDFD:
		return waitid(P_PIDFD, (id_t)syscall(SYS_pidfd_open, child, 0), &info, WEXITED);
	case FORM_WAIT_ANY:
		return waitpid(-1, NULL, 0);
	}
	return 0;
}

/* Runs run_wait() as the first process of a pid namespace, where its children have other numbers.
 */
static int run_wait_in_namespace(void)
{
	pid_t first;

	if (unshare(CLONE_NEWPID) < 0)
		return 0;
	first = fork();
	return first ? waitpid(first, NULL, 0) : run_wait();
}

/* Returns the youngest child of a process, once it has as many. */
static pid_t youngest_child(pid_t parent, int n)
{
	pid_t pids[4] = { 0 };
	char name[64];
	int found = 0;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/children", parent, parent);
	while (found < n) {
		FILE *f = fopen(name, "re");

		assert_non_null(f);
		found = fscanf(f, "%d %d %d", &pids[0], &pids[1], &pids[2]);
		fclose(f);
		usleep(1000);
	}
	assert_int_equal(found, n);
	return pids[n - 1];
}

/* Who waits for one child of several is not held up by the others. */
static void test_children(void **state)
{
	for (int i = FORM_WAIT_PID; i <= FORM_WAIT_ANY; i++) {
		const bool is_id = i >= FORM_WAITID_PID && i <= FORM_WAITID_PIDFD;
		/* Only root may make a namespace. */
		const int places = geteuid() == 0 ? 2 : 1;

		form = (enum wait_form)i;
		for (int is_inside = 0; is_inside < places; is_inside++) {
			pid_t child = child_start(is_inside ? run_wait_in_namespace : run_wait);
			pid_t waiter = is_inside ? youngest_child(child, 1) : child;
			pid_t wanted = youngest_child(waiter, 2);
			struct holder_answer answer;

			wait_for_call(waiter, waiter, is_id ? SYS_waitid : SYS_wait4);
			answer = look_up(waiter, waiter, REASON_CHILD);
			if (form == FORM_WAIT_ANY) {
				assert_int_equal(answer.n, 2);
				holder_answers_fini(&answer, 1);
			} else {
				assert_held_by(&answer, wanted, wanted);
			}
			child_end(child);
		}
	}
}

static int run_vfork(void)
{
	/* An older child is not the one that is waited for. */
	child_start(pause);
	if (vfork() == 0) {
		pause();
		_exit(0);
	}
	return 0;
}

static void test_vfork(void **state)
{
	pid_t parent = child_start(run_vfork), child = 0;
	struct holder_answer answer;
	int64_t end = clock_ns(CLOCK_MONOTONIC) + 60 * NS_PER_S;

	/* The parent gets into the call some time after it has started. */
	/* The child shares the memory of its parent, and the other one does not. */
	do {
		answer = look_up(parent, parent, REASON_VFORK);
		child = answer.n ? answer.holders[0].pid : 0;
		holder_answers_fini(&answer, 1);
		usleep(1000);
	} while (syscall(SYS_kcmp, parent, child, KCMP_VM, 0, 0) &&
		 clock_ns(CLOCK_MONOTONIC) < end);
	assert_true(child > 0 && clock_ns(CLOCK_MONOTONIC) < end);
	kill(child, SIGKILL);
	child_end(parent);
}

static void test_tracer(void **state)
{
	pid_t child = child_start(pause);
	struct holder_answer answer;
	int status;

	wait_for_call(child, child, SYS_pause);
	answer = look_up(child, child, REASON_STOPPED);
	assert_unknown(&answer, "who sent the signal");
	assert_int_equal(ptrace(PTRACE_SEIZE, child, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, child, 0, 0), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	answer = look_up(child, child, REASON_DEBUGGER);
	assert_held_by(&answer, getpid(), getpid());
	child_end(child);
}

static void file_write(const char *directory, const char *name, const char *text)
{
	char file[256];
	int fd;

	snprintf(file, sizeof(file), "%s/%s", directory, name);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(write(fd, text, strlen(text)) > 0);
	close(fd);
}

static void test_frozen(void **state)
{
	char mount[CGROUP_PATH_MAX], group[CGROUP_PATH_MAX + 64], name[64], pid[16];
	struct holder_answer answer;
	pid_t child;

	snprintf(name, sizeof(name), "/stackd-holder-%d", getpid());
	if (cgroup_mount(mount, sizeof(mount)))
		skip();
	snprintf(group, sizeof(group), "%s%s", mount, name);
	if (mkdir(group, 0755) < 0)
		skip();
	child = child_start(pause);
	snprintf(pid, sizeof(pid), "%d", child);
	file_write(group, "cgroup.procs", pid);
	answer = look_up(child, child, REASON_FROZEN);
	assert_unknown(&answer, "none of its control groups");
	file_write(group, "cgroup.freeze", "1");
	answer = look_up(child, child, REASON_FROZEN);
	assert_null(answer.unknown);
	assert_memory_equal(answer.object, "cgroup ", 7);
	assert_non_null(strstr(answer.object, name));
	holder_answers_fini(&answer, 1);
	file_write(group, "cgroup.freeze", "0");
	child_end(child);
	while (rmdir(group) < 0 && errno == EBUSY)
		usleep(1000);
}

/* A part of the control groups that is mounted before the whole of them is not taken for it. */
static void test_part_of_groups(void **state)
{
	char mounted[CGROUP_PATH_MAX], found[CGROUP_PATH_MAX], group[CGROUP_PATH_MAX + 64];
	char directory[] = "/tmp/test_holder.XXXXXX", part[64], whole[64];
	int status;
	pid_t child;

	if (geteuid() || cgroup_mount(mounted, sizeof(mounted)))
		skip();
	snprintf(group, sizeof(group), "%s/stackd-part-%d", mounted, getpid());
	if (mkdir(group, 0755) < 0)
		skip();
	assert_non_null(mkdtemp(directory));
	snprintf(part, sizeof(part), "%s/part", directory);
	snprintf(whole, sizeof(whole), "%s/whole", directory);
	assert_true(!mkdir(part, 0700) && !mkdir(whole, 0700));
	child = fork();
	if (!child) {
		if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount(group, part, NULL, MS_BIND, NULL) || umount2(mounted, MNT_DETACH) ||
		    mount("none", whole, "cgroup2", 0, NULL))
			_exit(2);
		_exit(cgroup_mount(found, sizeof(found)) || strcmp(found, whole));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(!rmdir(part) && !rmdir(whole) && !rmdir(directory) && !rmdir(group));
	if (WEXITSTATUS(status) == 2)
		skip(); /* namespaces of mounts cannot be made here */
	assert_int_equal(status, 0);
}

static void test_links(void **state)
{
	enum descriptor_kind kind;
	uint64_t key, other;

	assert_true(descriptor_parse("pipe:[17]", &kind, &key));
	assert_true(kind == DESCRIPTOR_PIPE && key == 17);
	assert_true(descriptor_parse("socket:[4294967296]", &kind, &key));
	assert_true(kind == DESCRIPTOR_SOCKET && key == UINT64_C(4294967296));
	assert_true(descriptor_parse("anon_inode:[eventfd]", &kind, &key));
	assert_int_equal(kind, DESCRIPTOR_EVENTFD);
	assert_true(descriptor_parse("/run/a/fifo", &kind, &key));
	assert_true(descriptor_parse("/mnt/fifo", &kind, &other));
	assert_true(kind == DESCRIPTOR_FILE && key == other);
	assert_false(descriptor_parse("anon_inode:[eventpoll]", &kind, &key));
	assert_false(descriptor_parse("pipe:[]", &kind, &key));
	assert_false(descriptor_parse("", &kind, &key));
	assert_true(
		descriptor_number("pos:\t0\nflags:\t0100001\nmnt_id:\t14\n", "flags:", 8, &key));
	assert_int_equal(key & O_ACCMODE, O_WRONLY);
	assert_false(descriptor_number("pos:\t0\nflags:", "flags:", 8, &key));
}

/* Reads a line of /proc/net/tcp with these ends and this state. */
static struct inet_socket inet_of(const char *local, const char *remote, const char *word,
				  unsigned int inode)
{
	struct inet_socket socket;
	char line[256];

	snprintf(line, sizeof(line),
		 "   0: %s %s %s 00000000:00000000 00:00000000 00000000     0        0 %u 1", local,
		 remote, word, inode);
	assert_true(inet_line_parse(line, &socket));
	return socket;
}

/*
 * The peer of a connection has its ends the other way round. A connection that is not accepted yet
 * has the listener instead, which has the port that the client wants, not that of the client.
 */
static void test_inet_peers(void **state)
{
	struct inet_socket sockets[] = {
		inet_of("00000000:1388", "00000000:0000", "0A", 1), /* listens at port 5000 */
		inet_of("00000000:1F90", "00000000:0000", "0A", 2), /* listens at port 8080 */
		inet_of("0100007F:1F90", "0100007F:1389", "01", 3), /* accepted from port 5001 */
	};
	const struct inet_table table = { .v = sockets, .n = ARRAY_SIZE(sockets) };
	struct inet_socket client;

	client = inet_of("0100007F:1388", "0100007F:1F90", "02", 9);
	assert_ptr_equal(inet_table_peer(&table, &client), &sockets[1]);
	client = inet_of("0100007F:1389", "0100007F:1F90", "01", 9);
	assert_ptr_equal(inet_table_peer(&table, &client), &sockets[2]);
	client = inet_of("0100007F:1388", "0100007F:0050", "02", 9);
	assert_null(inet_table_peer(&table, &client));
	/* A listener of this host is not the one of another host. */
	client = inet_of("0100000A:1388", "0200000A:1F90", "02", 9);
	assert_null(inet_table_peer(&table, &client));
	assert_null(inet_table_peer(&table, &sockets[1]));
}

static void test_inet_lines(void **state)
{
	char text[INET_END_TEXT];
	struct inet_socket socket;

	assert_true(
		inet_line_parse("   3: 0100007F:1F90 0200000A:0016 01 0000000A:00000002 "
				"00:00000000 00000000     0        0 4242 1 0000 20 4 30 10 -1\n",
				&socket));
	assert_int_equal(socket.inode, 4242);
	assert_int_equal(socket.unsent, 10);
	assert_int_equal(socket.unread, 2);
	inet_end_text(&socket.local, text);
	assert_string_equal(text, "127.0.0.1:8080");
	inet_end_text(&socket.remote, text);
	assert_string_equal(text, "10.0.0.2:22");
	assert_true(inet_is_loopback(&socket.local) && !inet_is_loopback(&socket.remote));
	assert_false(inet_is_open_ended(&socket));
	assert_true(inet_line_parse("   0: 00000000000000000000000001000000:0016 "
				    "00000000000000000000000000000000:0000 0A 00000000:00000000 "
				    "00:00000000 00000000     0        0 7 1 0000 99 0 0 10 0\n",
				    &socket));
	inet_end_text(&socket.local, text);
	assert_string_equal(text, "[::1]:22");
	assert_true(inet_is_open_ended(&socket) && inet_is_loopback(&socket.local));
	assert_false(inet_line_parse("  sl  local_address rem_address   st", &socket));
	assert_false(
		inet_line_parse("   0: 0100007:1F90 00000000:0000 0A 0:0 0:0 0 0 0 9", &socket));
	assert_false(
		inet_line_parse("   0: 0100007F:11F90 00000000:0000 0A 0:0 0:0 0 0 0 9", &socket));
	assert_false(inet_line_parse("", &socket));
}

static void test_gone(void **state)
{
	pid_t pid = child_start(pause);
	struct holder_question question = {
		.pid = pid, .tid = pid, .start_boot_ns = start_of(pid, pid), .reason = REASON_FLOCK
	};
	struct holder_search *search = holder_search_new(INT64_MAX, -1);
	struct holder_answer answer;

	/* A thread with the same id that started at another time is another thread. */
	question.start_boot_ns += 10 * NS_PER_S;
	holder_look_up(search, &question, &answer);
	assert_unknown(&answer, "went on");
	child_end(pid);
	holder_look_up(search, &question, &answer);
	assert_unknown(&answer, "went on");
	holder_search_free(search);
}

/* A look-up that hangs costs its call half a second, and its process is replaced. */
static void test_hanging(void **state)
{
	const struct holder_question questions[3] = { { .pid = 1 },
						      { .pid = HANGING },
						      { .pid = 1 } };
	struct holder_answer answers[3] = {};
	int64_t begin, cpu_ns = -1;
	int r;

	/* On a busy host, the first answer, which does not hang, may be late as well. */
	do {
		begin = clock_ns(CLOCK_MONOTONIC);
		r = holder_find(questions, 3, HOLDER_FOR_ANSWER, answers, &cpu_ns);
	} while (r == -EBUSY || (!r && !answers[0].is_known));
	assert_int_equal(r, 0);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begin >= HOLDER_DEADLINE_NS);
	assert_false(answers[1].is_known || answers[2].is_known);
	answers[0] = (struct holder_answer){ 0 };
	do
		r = holder_find(questions, 1, HOLDER_FOR_ANSWER, answers, &cpu_ns);
	while (r == -EBUSY || (!r && !answers[0].is_known));
	assert_int_equal(r, 0);
	/* The daemon compares texts by their addresses. */
	assert_ptr_equal(answers[0].unknown, holder_went_on);
	assert_true(cpu_ns > 0);
	holder_answers_fini(answers, 3);
	holder_stop();
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* Looks up a thread again and again; returns how often there was no turn within half a second. */
static void *refused_count(void *userdata)
{
	const struct holder_question question = { .pid = 1 };
	uintptr_t refused = 0;
	int i;

	for (i = 0; i < 10; i++) {
		struct holder_answer answer = {};
		int r = holder_find(&question, 1, HOLDER_FOR_ANSWER, &answer, NULL);

		refused += r == -EBUSY;
		holder_answers_fini(&answer, 1);
	}
	return (void *)refused;
}

/* Two clients, or a client and a window, that ask at the same time take turns. */
static void test_turns(void **state)
{
	pthread_t thread;
	void *refused, *others;

	assert_int_equal(pthread_create(&thread, NULL, refused_count, NULL), 0);
	refused = refused_count(NULL);
	assert_int_equal(pthread_join(thread, &others), 0);
	/* On a busy host, some may wait for longer than that. */
	assert_in_range((uintptr_t)refused + (uintptr_t)others, 0, 3);
}

static void test_lines(void **state)
{
	struct file_lock lock, wanted;

	assert_true(file_lock_parse("1: FLOCK  ADVISORY  WRITE 1300 08:a1:12345 0 EOF\n", &lock));
	assert_true(lock.is_flock && lock.is_exclusive && !lock.is_waiting);
	assert_int_equal(lock.pid, 1300);
	assert_int_equal(lock.minor, 0xa1);
	assert_int_equal(lock.inode, 12345);
	assert_true(lock.end == UINT64_MAX);
	assert_true(file_lock_parse("1: -> FLOCK  ADVISORY  READ 9 08:a1:12345 0 EOF", &wanted));
	assert_true(wanted.is_waiting && !wanted.is_exclusive);
	assert_true(file_lock_blocks(&lock, &wanted));
	assert_false(file_lock_blocks(&wanted, &lock));
	lock.is_exclusive = false;
	assert_false(file_lock_blocks(&lock, &wanted));
	assert_true(file_lock_parse("lock:\t2: OFDLCK ADVISORY  WRITE -1 00:2b:7 10 19\n", &lock));
	assert_true(lock.is_of_file && lock.pid == -1);
	assert_true(file_lock_parse("3:  -> POSIX  ADVISORY  READ 5 00:2b:7 19 30", &wanted));
	assert_true(file_lock_blocks(&lock, &wanted));
	wanted.start = 20;
	assert_false(file_lock_blocks(&lock, &wanted));
	/* The last byte that is wanted is the first one that is held, or the one before it. */
	assert_true(file_lock_parse("3:  -> POSIX  ADVISORY  READ 5 00:2b:7 0 10", &wanted));
	assert_true(file_lock_blocks(&lock, &wanted));
	wanted.end = 9;
	assert_false(file_lock_blocks(&lock, &wanted));
	/* A process that turns its lock for reading into one for writing waits for others only. */
	assert_true(file_lock_parse("3: POSIX  ADVISORY  READ 5 00:2b:7 0 EOF", &lock));
	assert_true(file_lock_parse("3:  -> POSIX  ADVISORY  WRITE 5 00:2b:7 0 EOF", &wanted));
	assert_false(file_lock_blocks(&lock, &wanted));
	assert_true(file_lock_parse("4: POSIX  ADVISORY  READ 6 00:2b:7 0 EOF", &lock));
	assert_true(file_lock_blocks(&lock, &wanted));
	assert_false(file_lock_parse("4: LEASE  ACTIVE    READ 5 00:2b:7 0 EOF", &lock));
	assert_true(file_lease_parse("4: LEASE  BREAKING  UNLCK 5 00:2b:7 0 EOF", &lock));
	assert_true(lock.is_lease && lock.pid == 5 && lock.inode == 7);
	assert_false(file_lease_parse("3: FLOCK  ADVISORY  READ 5 00:2b:7 0 EOF", &lock));
	assert_int_equal(file_lease_waiter("4: -> LEASE  BREAKER   WRITE 9 <none>:0 0 EOF"), 9);
	assert_int_equal(file_lease_waiter("4: LEASE  BREAKING  UNLCK 5 00:2b:7 0 EOF"), 0);
	assert_int_equal(file_lease_waiter("4: -> FLOCK  ADVISORY  READ 9 08:a1:12345 0 EOF"), 0);
	assert_false(file_lock_parse("5: POSIX  ADVISORY  READ 5 <none>:0 0 EOF", &lock));
	assert_false(file_lock_parse("", &lock));
	assert_false(file_lock_parse("pos:\t0", &lock));
}

static int set_up(void **state)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	return unlink(path);
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_flock),
		cmocka_unit_test(test_fcntl),
		cmocka_unit_test(test_mutex),
		cmocka_unit_test(test_shared_mutex),
		cmocka_unit_test(test_robust_mutex),
		cmocka_unit_test(test_pi_mutex),
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_rwlock),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_own_pipe),
		cmocka_unit_test(test_fifo),
		cmocka_unit_test(test_eventfd),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_unix_socket),
		cmocka_unit_test(test_tcp_socket),
		cmocka_unit_test(test_udp_socket),
		cmocka_unit_test(test_vfork),
		cmocka_unit_test(test_tracer),
		cmocka_unit_test(test_frozen),
		cmocka_unit_test(test_part_of_groups),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_inet_lines),
		cmocka_unit_test(test_inet_peers),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_hanging),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_mq),
		cmocka_unit_test(test_semaphore),
		cmocka_unit_test(test_message),
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_lease),
		cmocka_unit_test(test_many_locks),
		cmocka_unit_test(test_musl_mutex),
		cmocka_unit_test(test_shared_lease),
		cmocka_unit_test(test_terminal_of_container),
	};

	/* holder_find() runs this program as the process that looks holders up. */
	if (strcmp(argv[0], HOLDER_PROCESS_NAME) == 0)
		return holder_main();

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_kinds DIR KIND...: starts a process for each KIND that waits in one way, for ever, and
 * prints "kind NAME PID REASON" for it, or "skip NAME WHY" where the host lacks what the wait
 * needs. All end with this program. DIR is an empty directory, at which each mounts in a namespace
 * of its own. Without KIND it prints the table.
 */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/auto_fs.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/fuse.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/io_uring.h>
#include <linux/kvm.h>
#include <linux/loop.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <linux/userfaultfd.h>
#include <linux/vm_sockets.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>

#include "prog.h"

enum { PAGE = 4096, FILE_NODE = 2, FILE_BYTES = 1 << 20 };

/*
 * One way to wait. A process of its own, the keeper, calls set_up, if that is not NULL, starts the
 * process that calls wait, and calls keep with its pid, if that is not NULL.
 */
struct kind {
	const char *name;
	const char *reason;
	void (*set_up)(void);
	void (*wait)(void);
	void (*keep)(pid_t waiter);
	uint32_t unanswered; /* request that the FUSE file system leaves without an answer */
	uint32_t open_flags; /* what it answers to FUSE_OPEN */
};

static const struct kind *kind;
static const char *dir;
static int fds[2], other_fd; /* what set_up made for wait */
static void (*undo)(void);   /* removes what would outlive the keeper */
static char block[1 << 16];
static int end_fds[2]; /* a pipe that ends when the keepers are to end */

/* Ends the keeper, because the host lacks something. */
static __attribute__((format(printf, 1, 2))) void skip(const char *format, ...)
{
	va_list args;

	printf("skip %s ", kind->name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	exit(0);
}

static void skip_unless(bool condition, const char *what)
{
	if (!condition)
		skip("%s: %s", what, strerror(errno));
}

/* Starts a process that ends with this one; true in that process. */
static bool fork_helper(pid_t *pid_out)
{
	*pid_out = fork();
	need(*pid_out >= 0, "fork");
	if (!*pid_out)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return !*pid_out;
}

/* Waits until a thread sleeps, and goes on to. */
static void wait_until_asleep(pid_t pid, pid_t tid)
{
	char path[64], text[256], *state;
	int asleep = 0, fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	while (asleep < 5) {
		usleep(20000);
		fd = open(path, O_RDONLY);
		n = read(fd, text, sizeof(text) - 1);
		need(n > 0, path);
		close(fd);
		text[n] = '\0';
		state = strrchr(text, ')');
		asleep = state && strchr("SDtT", state[2]) ? asleep + 1 : 0;
	}
}

static pid_t helper_tid;
static void *(*helper_function)(void *);

static void *helper_thread(void *arg)
{
	prctl(PR_SET_NAME, "helper");
	__atomic_store_n(&helper_tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	return helper_function(arg);
}

/* Runs a function in a thread, which is not the one that is looked at, and lets it come to its
 * wait. */
static pthread_t beside(void *(*function)(void *))
{
	pthread_t thread;

	helper_function = function;
	need(pthread_create(&thread, NULL, helper_thread, NULL) == 0, "pthread_create");
	while (!__atomic_load_n(&helper_tid, __ATOMIC_ACQUIRE))
		usleep(1000);
	wait_until_asleep(getpid(), helper_tid);
	return thread;
}

static void *pause_thread(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* Returns a page whose first access waits for a userfaultfd that nobody reads. */
static void *missing_page(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	other_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	range.range.start = (unsigned long)page;
	range.range.len = PAGE;
	need(other_fd >= 0 && !ioctl(other_fd, UFFDIO_API, &api) &&
		     !ioctl(other_fd, UFFDIO_REGISTER, &range),
	     "userfaultfd");
	return page;
}

static char *path_in_dir(const char *name)
{
	char *path;

	need(asprintf(&path, "%s/%s-%s", dir, kind->name, name) > 0, "asprintf");
	return path;
}

/* Locks of programs. */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void wait_futex(void)
{
	int word = 0;

	raw_futex_wait(&word, 0);
}

static void wait_futexes(void)
{
	unsigned int word = 0;
	struct {
		uint64_t val, uaddr;
		uint32_t flags, reserved;
	} waiter = { 0, (uint64_t)&word, 2, 0 };

	syscall(449 /* futex_waitv */, &waiter, 1, 0, NULL, 0);
}

static int pi_word;

static void *pi_thread(void *arg)
{
	syscall(SYS_futex, &pi_word, FUTEX_LOCK_PI, 0, NULL);
	return pause_thread(arg);
}

static void wait_pi(void)
{
	beside(pi_thread);
	syscall(SYS_futex, &pi_word, FUTEX_LOCK_PI, 0, NULL);
}

static void wait_mutex(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_lock(&mutex);
}

static void wait_cond(void)
{
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&mutex);
	pthread_cond_wait(&cond, &mutex);
}

static void wait_sem(void)
{
	sem_t sem;

	sem_init(&sem, 0, 0);
	sem_wait(&sem);
}

static void wait_rwlock(void)
{
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

	pthread_rwlock_rdlock(&lock);
	pthread_rwlock_wrlock(&lock);
}

static void wait_barrier(void)
{
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_barrier_wait(&barrier);
}

static void wait_join(void)
{
	pthread_join(beside(pause_thread), NULL);
}

/* System V and POSIX IPC. What has a name is removed before the wait or with the namespace. */

static void own_ipc(void)
{
	skip_unless(unshare(CLONE_NEWIPC) == 0, "unshare(CLONE_NEWIPC)");
}

static void wait_semop(void)
{
	struct sembuf down = { .sem_op = -1 };

	semop(semget(IPC_PRIVATE, 1, 0600), &down, 1);
}

static void wait_msgrcv(void)
{
	msgrcv(msgget(IPC_PRIVATE, 0600), block, 100, 0, 0);
}

static void wait_msgsnd(void)
{
	int queue = msgget(IPC_PRIVATE, 0600);

	block[0] = 1;
	while (msgsnd(queue, block, 4000, 0) == 0)
		;
}

static mqd_t mq_make(void)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	mqd_t queue = mq_open("/kinds", O_CREAT | O_RDWR, 0600, &attr);

	need(queue >= 0, "mq_open");
	return queue;
}

static void wait_mq_receive(void)
{
	mq_receive(mq_make(), block, 8, NULL);
}

static void wait_mq_send(void)
{
	mqd_t queue = mq_make();

	while (mq_send(queue, block, 8, 0) == 0)
		;
}

/* Files that are no files. */

static void make_pipe(void)
{
	need(pipe(fds) == 0, "pipe");
}

static void wait_pipe_read(void)
{
	read(fds[0], block, 1);
}

static void wait_pipe_write(void)
{
	while (write(fds[1], block, sizeof(block)) > 0)
		;
}

static void wait_splice(void)
{
	int null = open("/dev/null", O_WRONLY);

	splice(fds[0], NULL, null, NULL, 1, 0);
}

static void wait_tee(void)
{
	int to[2];

	need(pipe(to) == 0, "pipe");
	tee(fds[0], to[1], 1, 0);
}

static void wait_vmsplice(void)
{
	struct iovec v = { block, sizeof(block) };

	while (vmsplice(fds[1], &v, 1, 0) > 0)
		;
}

/* A writer of a pipe holds the pipe's lock while it waits for its page. */
static void *pipe_lock_thread(void *arg)
{
	write(fds[1], missing_page(), 1);
	return arg;
}

static void wait_pipe_lock(void)
{
	beside(pipe_lock_thread);
	read(fds[0], block, 1);
}

static void wait_fifo(void)
{
	char *path = path_in_dir("fifo");

	mkfifo(path, 0600);
	open(path, O_RDONLY);
}

static void wait_eventfd(void)
{
	read(eventfd(0, 0), block, 8);
}

static void wait_eventfd_write(void)
{
	uint64_t most = UINT64_MAX - 1;
	int fd = eventfd(0, 0);

	while (write(fd, &most, 8) > 0)
		;
}

static void wait_timerfd(void)
{
	read(timerfd_create(CLOCK_MONOTONIC, 0), block, 8);
}

static void wait_signalfd(void)
{
	sigset_t set;

	sigemptyset(&set);
	read(signalfd(-1, &set, 0), block, sizeof(block));
}

static void wait_inotify(void)
{
	read(inotify_init(), block, sizeof(block));
}

static void wait_userfaultfd_read(void)
{
	missing_page();
	read(other_fd, block, sizeof(block));
}

static void wait_page_of_userfaultfd(void)
{
	*(volatile char *)missing_page() = 1;
}

static void wait_epoll(void)
{
	struct epoll_event event;

	epoll_wait(epoll_create1(0), &event, 1, -1);
}

/* Two functions in which a server process of PostgreSQL waits, which is not idle then. */
void ProcSleep(void);
void SyncRepWaitForLSN(void);

__attribute__((noinline)) void ProcSleep(void)
{
	wait_epoll();
}

__attribute__((noinline)) void SyncRepWaitForLSN(void)
{
	wait_epoll();
}

static void wait_poll(void)
{
	poll(NULL, 0, -1);
}

static void wait_ppoll(void)
{
	struct pollfd fd = { (int)syscall(SYS_pidfd_open, getppid(), 0), POLLIN, 0 };

	ppoll(&fd, 1, NULL, NULL);
}

static void wait_select(void)
{
	select(0, NULL, NULL, NULL, NULL);
}

static void wait_io_uring(void)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SQPOLL };
	int ring = (int)syscall(SYS_io_uring_setup, 4, &params);

	need(ring >= 0, "io_uring_setup");
	syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
}

static void need_io_uring(void)
{
	struct io_uring_params params = {};

	skip_unless(syscall(SYS_io_uring_setup, 1, &params) >= 0, "io_uring_setup");
}

static void wait_aio(void)
{
	aio_context_t context = 0;
	struct io_event event;

	syscall(SYS_io_setup, 1, &context);
	syscall(SYS_io_getevents, context, 1, 1, &event, NULL);
}

/* Timers and signals. */

static void wait_nanosleep(void)
{
	raw_nanosleep(3600 * 1000000000LL);
}

static void wait_pause(void)
{
	pause();
}

static void wait_sigwait(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &sig);
}

static void wait_sigsuspend(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigsuspend(&set);
}

/* Processes. */

static void helper_main(void)
{
	prctl(PR_SET_NAME, "helper");
	for (;;)
		pause();
}

static pid_t make_child(void)
{
	pid_t pid;

	if (fork_helper(&pid))
		helper_main();
	return pid;
}

static void wait_child(void)
{
	waitpid(make_child(), NULL, 0);
}

static void wait_pidfd(void)
{
	pid_t pid = make_child();
	siginfo_t info;

	waitid(3 /* P_PIDFD */, (id_t)syscall(SYS_pidfd_open, pid, 0), &info, WEXITED);
}

static void wait_vfork(void)
{
	if (vfork() == 0) {
		raw_syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0);
		raw_syscall(SYS_pause, 0, 0, 0, 0);
		_exit(0);
	}
}

static void wait_stop(void)
{
	raise(SIGSTOP);
}

static void keep_traced(pid_t waiter)
{
	wait_until_asleep(waiter, waiter);
	need(ptrace(PTRACE_SEIZE, waiter, 0, 0) == 0, "PTRACE_SEIZE");
	need(ptrace(PTRACE_INTERRUPT, waiter, 0, 0) == 0, "PTRACE_INTERRUPT");
}

/* Traces what the waiter says on the pipe, and lets it go on. */
static void keep_other_traced(pid_t waiter)
{
	pid_t pid;

	(void)waiter;
	need(read(fds[0], &pid, sizeof(pid)) == sizeof(pid), "pipe");
	need(ptrace(PTRACE_SEIZE, pid, 0, 0) == 0, "PTRACE_SEIZE");
	kill(waiter, SIGUSR1);
}

/* Has the keeper trace a thread, of which another process tells it if `pid` is 0. */
static void ask_to_trace(pid_t pid)
{
	if (pid)
		write(fds[1], &pid, sizeof(pid));
	wait_sigwait();
}

static void block_and_make_pipe(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	make_pipe();
}

/* A thread that is traced and not reaped keeps execve() from ending. */
static void wait_exec(void)
{
	char *argv[] = { "true", NULL };

	beside(pause_thread);
	ask_to_trace(helper_tid);
	execv("/bin/true", argv);
}

/* The init of a pid namespace waits, as it ends, for a child that a tracer keeps. */
static void own_pids(void)
{
	block_and_make_pipe();
	skip_unless(unshare(CLONE_NEWPID) == 0, "unshare(CLONE_NEWPID)");
}

static void wait_pid_namespace(void)
{
	char self[16] = "";
	pid_t pid;

	if (fork_helper(&pid)) {
		/* /proc is that of the initial namespace. */
		readlink("/proc/self", self, sizeof(self) - 1);
		pid = atoi(self);
		write(fds[1], &pid, sizeof(pid));
		helper_main();
	}
	ask_to_trace(0);
	_exit(0);
}

static void wait_seccomp(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 4, code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	need(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		     &program) >= 0,
	     "seccomp");
	getppid();
}

static void wait_seccomp_notify(void)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { 1, code };
	long fd;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		     &program);
	memset(block, 0, sizeof(struct seccomp_notif));
	ioctl((int)fd, SECCOMP_IOCTL_NOTIF_RECV, block);
}

/* File locks. */

static void make_file(void)
{
	char *path = path_in_dir("file");

	fds[0] = open(path, O_RDWR | O_CREAT, 0600);
	fds[1] = open(path, O_RDWR);
	need(fds[0] >= 0 && fds[1] >= 0, path);
	need(ftruncate(fds[0], FILE_BYTES) == 0, path);
}

static void wait_flock(void)
{
	flock(fds[0], LOCK_EX);
	flock(fds[1], LOCK_EX);
}

static struct flock whole_file = { .l_type = F_WRLCK };

static void keep_fcntl(void)
{
	make_file();
	fcntl(fds[0], F_SETLK, &whole_file);
}

static void wait_fcntl(void)
{
	fcntl(fds[1], F_SETLKW, &whole_file);
}

static void wait_ofd(void)
{
	fcntl(fds[0], F_OFD_SETLK, &whole_file);
	fcntl(fds[1], F_OFD_SETLKW, &whole_file);
}

static void wait_lease(void)
{
	make_file();
	signal(SIGIO, SIG_IGN);
	close(fds[1]);
	need(fcntl(fds[0], F_SETLEASE, F_WRLCK) == 0, "F_SETLEASE");
	open(path_in_dir("file"), O_RDWR);
}

/* Terminals. */

static void make_pty(void)
{
	struct termios raw;
	char name[64];

	fds[0] = posix_openpt(O_RDWR | O_NOCTTY);
	skip_unless(fds[0] >= 0 && !grantpt(fds[0]) && !unlockpt(fds[0]) &&
			    !ptsname_r(fds[0], name, sizeof(name)),
		    "a pty");
	fds[1] = open(name, O_RDWR | O_NOCTTY);
	skip_unless(fds[1] >= 0, name);
	tcgetattr(fds[1], &raw);
	cfmakeraw(&raw);
	tcsetattr(fds[1], TCSANOW, &raw);
}

static void wait_tty_read(void)
{
	read(fds[1], block, 1);
}

static void wait_tty_write(void)
{
	while (write(fds[1], block, sizeof(block)) > 0)
		;
}

/* Sockets. */

static void own_net(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	skip_unless(unshare(CLONE_NEWNET) == 0, "unshare(CLONE_NEWNET)");
	need(ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &lo) == 0, "lo");
}

static int tcp_listen(struct sockaddr_in *address, int protocol)
{
	socklen_t size = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM, protocol);

	*address = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	skip_unless(fd >= 0, "socket");
	need(!bind(fd, (void *)address, size) && !listen(fd, 0) &&
		     !getsockname(fd, (void *)address, &size),
	     "listen");
	return fd;
}

static void connect_pair(int protocol)
{
	struct sockaddr_in address;
	int listener = tcp_listen(&address, protocol);

	fds[0] = socket(AF_INET, SOCK_STREAM, protocol);
	need(connect(fds[0], (void *)&address, sizeof(address)) == 0, "connect");
	fds[1] = accept(listener, NULL, NULL);
	need(fds[1] >= 0, "accept");
}

static void make_tcp(void)
{
	connect_pair(0);
}

static void make_mptcp(void)
{
	own_net();
	connect_pair(262 /* IPPROTO_MPTCP */);
}

static void make_tcp_listener(void)
{
	struct sockaddr_in address;

	fds[0] = tcp_listen(&address, 0);
}

static void wait_recv(void)
{
	recv(fds[0], block, 1, 0);
}

static void wait_recv_all(void)
{
	send(fds[1], block, 1, 0);
	recv(fds[0], block, 2, MSG_WAITALL);
}

static void wait_send(void)
{
	while (send(fds[0], block, sizeof(block), 0) > 0)
		;
}

static void wait_accept(void)
{
	accept(fds[0], NULL, NULL);
}

static void wait_connect(void)
{
	struct sockaddr_in address;

	tcp_listen(&address, 0);
	for (;;)
		connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&address, sizeof(address));
}

/* Nobody reads what is in the other's buffer, and close() waits until it is read. */
static void wait_linger(void)
{
	struct linger linger = { 1, 3600 };

	connect_pair(0);
	setsockopt(fds[0], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	while (send(fds[0], block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	close(fds[0]);
}

/* A reader holds the socket while it waits for its page. */
static void *socket_lock_thread(void *arg)
{
	recv(fds[0], missing_page(), 1, 0);
	return arg;
}

static void wait_socket_lock(void)
{
	send(fds[1], block, 1, 0);
	beside(socket_lock_thread);
	recv(fds[0], block, 1, 0);
}

static void make_udp(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };

	fds[0] = socket(AF_INET, SOCK_DGRAM, 0);
	need(bind(fds[0], (void *)&address, sizeof(address)) == 0, "bind");
}

static void make_unix(void)
{
	need(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
}

static void make_unix_dgram(void)
{
	need(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0, "socketpair");
}

static void make_unix_packets(void)
{
	need(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == 0, "socketpair");
}

static struct sockaddr_un unix_address = { .sun_family = AF_UNIX };

/* The receiver's queue is full. */
static void wait_unix_dgram_send(void)
{
	socklen_t size = sizeof(unix_address);
	int to = socket(AF_UNIX, SOCK_DGRAM, 0), from = socket(AF_UNIX, SOCK_DGRAM, 0);

	bind(to, (void *)&unix_address, sizeof(sa_family_t));
	getsockname(to, (void *)&unix_address, &size);
	need(connect(from, (void *)&unix_address, size) == 0, "connect");
	while (send(from, block, 1, 0) > 0)
		;
}

static void make_unix_listener(void)
{
	fds[0] = socket(AF_UNIX, SOCK_STREAM, 0);
	need(!bind(fds[0], (void *)&unix_address, sizeof(sa_family_t)) && !listen(fds[0], 0),
	     "listen");
}

static void wait_unix_connect(void)
{
	socklen_t size = sizeof(unix_address);

	getsockname(fds[0], (void *)&unix_address, &size);
	for (;;)
		connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&unix_address, size);
}

static void make_netlink(void)
{
	fds[0] = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	skip_unless(fds[0] >= 0, "AF_NETLINK");
}

static void make_packet(void)
{
	own_net();
	fds[0] = socket(AF_PACKET, SOCK_RAW, htons(0x88b5));
	skip_unless(fds[0] >= 0, "AF_PACKET");
}

static void make_raw(void)
{
	own_net();
	fds[0] = socket(AF_INET, SOCK_RAW, 253);
	skip_unless(fds[0] >= 0, "a raw socket");
}

static void make_vsock(void)
{
	struct sockaddr_vm address = { .svm_family = AF_VSOCK,
				       .svm_cid = VMADDR_CID_LOCAL,
				       .svm_port = VMADDR_PORT_ANY };
	socklen_t size = sizeof(address);
	int listener = socket(AF_VSOCK, SOCK_STREAM, 0);

	skip_unless(listener >= 0, "AF_VSOCK");
	skip_unless(bind(listener, (void *)&address, size) == 0, "bind of a vsock");
	need(!listen(listener, 1) && !getsockname(listener, (void *)&address, &size), "listen");
	fds[0] = socket(AF_VSOCK, SOCK_STREAM, 0);
	address.svm_cid = VMADDR_CID_LOCAL;
	skip_unless(connect(fds[0], (void *)&address, size) == 0, "vsock loopback");
}

static void make_vsock_listener(void)
{
	struct sockaddr_vm address = { .svm_family = AF_VSOCK,
				       .svm_cid = VMADDR_CID_ANY,
				       .svm_port = VMADDR_PORT_ANY };

	fds[0] = socket(AF_VSOCK, SOCK_STREAM, 0);
	skip_unless(fds[0] >= 0 && !bind(fds[0], (void *)&address, sizeof(address)) &&
			    !listen(fds[0], 1),
		    "AF_VSOCK");
}

static void make_tun(void)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };

	own_net();
	fds[0] = open("/dev/net/tun", O_RDWR);
	skip_unless(fds[0] >= 0 && !ioctl(fds[0], TUNSETIFF, &request), "/dev/net/tun");
}

static void wait_read(void)
{
	read(fds[0], block, sizeof(block));
}

/* Devices and kernel logs. */

static void make_kmsg(void)
{
	fds[0] = open("/dev/kmsg", O_RDONLY);
	skip_unless(fds[0] >= 0, "/dev/kmsg");
	lseek(fds[0], 0, SEEK_END);
}

static void wait_kmsg(void)
{
	while (read(fds[0], block, sizeof(block)) != 0)
		;
}

/* A guest of one instruction, hlt. */
static void make_guest(void)
{
	struct kvm_userspace_memory_region region = { .guest_phys_addr = 0x1000,
						      .memory_size = PAGE };
	struct kvm_sregs sregs;
	struct kvm_regs regs = { .rip = 0x1000, .rflags = 2 };
	int kvm = open("/dev/kvm", O_RDWR), vm;
	char *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	skip_unless(kvm >= 0, "/dev/kvm");
	vm = ioctl(kvm, KVM_CREATE_VM, 0);
	skip_unless(vm >= 0 && !ioctl(vm, KVM_CREATE_IRQCHIP, 0), "a guest");
	memset(code, 0xf4, PAGE);
	region.userspace_addr = (unsigned long)code;
	need(ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) == 0, "guest memory");
	fds[0] = ioctl(vm, KVM_CREATE_VCPU, 0);
	skip_unless(fds[0] >= 0 && !ioctl(fds[0], KVM_GET_SREGS, &sregs), "a guest CPU");
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	need(!ioctl(fds[0], KVM_SET_SREGS, &sregs) && !ioctl(fds[0], KVM_SET_REGS, &regs),
	     "registers");
}

static void wait_guest(void)
{
	make_guest();
	ioctl(fds[0], KVM_RUN, 0);
	perror("KVM_RUN");
}

static void need_guest(void)
{
	skip_unless(open("/dev/kvm", O_RDWR) >= 0, "/dev/kvm");
}

/* A scanner holds the opens of a file. */
static void make_scanner(void)
{
	make_file();
	other_fd = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);
	skip_unless(other_fd >= 0, "fanotify");
	skip_unless(fanotify_mark(other_fd, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD,
				  path_in_dir("file")) == 0,
		    "fanotify permission events");
}

static void wait_scanned(void)
{
	open(path_in_dir("file"), O_RDONLY);
}

static void wait_fanotify(void)
{
	read(fanotify_init(FAN_CLASS_NOTIF, O_RDONLY), block, sizeof(block));
}

/* A FUSE file system that answers all but one kind of request. */

static int fuse_fd;
static char *mounted; /* where the file system is that set_up mounted */

/* Makes a mount namespace with an empty file system at DIR, and in it the directory to mount at. */
static void own_mounts(const char *name)
{
	skip_unless(unshare(CLONE_NEWNS) == 0 && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL),
		    "unshare(CLONE_NEWNS)");
	need(mount("none", dir, "tmpfs", 0, NULL) == 0, "mount tmpfs");
	mounted = path_in_dir(name);
	need(mkdir(mounted, 0755) == 0, mounted);
}

static void fuse_serve(void);

static void fuse_mount(void)
{
	char options[128];
	pid_t pid;

	own_mounts("fuse");
	fuse_fd = open("/dev/fuse", O_RDWR);
	skip_unless(fuse_fd >= 0, "/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse_fd);
	need(mount("none", mounted, "fuse.kinds", 0, options) == 0, "mount fuse");
	if (fork_helper(&pid))
		fuse_serve();
	close(fuse_fd);
}

static void fuse_answer(const struct fuse_in_header *in, const void *data, size_t size)
{
	struct fuse_out_header head = { (uint32_t)(sizeof(head) + size), 0, in->unique };
	struct iovec v[] = { { &head, sizeof(head) }, { (void *)data, size } };

	if (writev(fuse_fd, v, 2) < 0 && errno != ENOENT)
		perror("fuse");
}

static struct fuse_attr fuse_attr_of(uint64_t node)
{
	return (struct fuse_attr){ .ino = node,
				   .size = FILE_BYTES,
				   .mode = node == FILE_NODE ? S_IFREG | 0644 : S_IFDIR | 0755,
				   .nlink = 1 };
}

static void fuse_serve_one(const struct fuse_in_header *in)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
				      .minor = FUSE_KERNEL_MINOR_VERSION,
				      .max_readahead = 1 << 17,
				      .flags = FUSE_ASYNC_READ | FUSE_POSIX_LOCKS |
					       FUSE_BIG_WRITES | FUSE_WRITEBACK_CACHE,
				      .max_write = 1 << 17 };
	struct fuse_entry_out entry = { .nodeid = FILE_NODE, .attr = fuse_attr_of(FILE_NODE) };
	struct fuse_attr_out attr = { .attr = fuse_attr_of(in->nodeid) };
	struct fuse_open_out opened = { .open_flags = kind->open_flags };
	struct fuse_write_out written = { .size = PAGE };
	struct fuse_statfs_out fs = { .st.bsize = PAGE };
	struct fuse_out_header head = { .len = sizeof(head), .unique = in->unique };

	if (in->opcode == kind->unanswered || in->opcode == FUSE_FORGET ||
	    in->opcode == FUSE_INTERRUPT)
		return;
	switch (in->opcode) {
	case FUSE_INIT:
		return fuse_answer(in, &init, sizeof(init));
	case FUSE_LOOKUP:
		return fuse_answer(in, &entry, sizeof(entry));
	case FUSE_GETATTR:
		return fuse_answer(in, &attr, sizeof(attr));
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		return fuse_answer(in, &opened, sizeof(opened));
	case FUSE_STATFS:
		return fuse_answer(in, &fs, sizeof(fs));
	case FUSE_READ:
		return fuse_answer(in, block, PAGE);
	case FUSE_WRITE:
		return fuse_answer(in, &written, sizeof(written));
	case FUSE_GETXATTR:
		head.error = -ENOSYS;
		return (void)!write(fuse_fd, &head, sizeof(head));
	default:
		return fuse_answer(in, NULL, 0);
	}
}

static void fuse_serve(void)
{
	static char request[1 << 18];

	prctl(PR_SET_NAME, "helper");
	while (read(fuse_fd, request, sizeof(request)) > 0 || errno == ENOENT || errno == EINTR)
		fuse_serve_one((const void *)request);
	exit(0);
}

static char *fuse_file(void)
{
	char *path;

	need(asprintf(&path, "%s/file", mounted) > 0, "asprintf");
	return path;
}

static void wait_fuse_open(void)
{
	open(fuse_file(), O_RDONLY);
}

static void wait_fuse_read(void)
{
	fds[0] = open(fuse_file(), O_RDWR);
	read(fds[0], block, PAGE);
}

static void wait_fuse_mmap(void)
{
	char *p;

	fds[0] = open(fuse_file(), O_RDWR);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fds[0], 0);
	block[1] = *(volatile char *)p;
}

static void wait_fuse_flush(void)
{
	close(open(fuse_file(), O_RDWR));
}

static void wait_fuse_fsync(void)
{
	fsync(open(fuse_file(), O_RDWR));
}

static void wait_fuse_write_fsync(void)
{
	fds[0] = open(fuse_file(), O_RDWR);
	write(fds[0], block, PAGE);
	fsync(fds[0]);
}

static void wait_fuse_readdir(void)
{
	syscall(SYS_getdents64, open(mounted, O_RDONLY | O_DIRECTORY), block, sizeof(block));
}

static void wait_fuse_statfs(void)
{
	struct statfs fs;

	statfs(mounted, &fs);
}

static void wait_fuse_lock(void)
{
	fcntl(open(fuse_file(), O_RDWR), F_SETLKW, &whole_file);
}

static void *fuse_open_thread(void *arg)
{
	open(fuse_file(), O_RDONLY);
	return arg;
}

/* Another thread looks the same name up. */
static void wait_same_lookup(void)
{
	beside(fuse_open_thread);
	open(fuse_file(), O_RDONLY);
}

static void *munmap_thread(void *arg)
{
	char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);

	p[0] = 1;
	munmap(p, PAGE);
	return arg;
}

/* munmap() writes the pages while it holds the map of the process. */
static void wait_mmap_lock(void)
{
	fds[0] = open(fuse_file(), O_RDWR);
	beside(munmap_thread);
	mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* As ps does, reads the memory of a process that waits for its map. */
static void wait_cmdline(void)
{
	char path[64];
	pid_t pid;

	if (fork_helper(&pid)) {
		prctl(PR_SET_NAME, "helper");
		wait_mmap_lock();
	}
	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	for (;;) {
		read(open(path, O_RDONLY), block, sizeof(block));
		usleep(100000);
	}
}

/* An overlay over the FUSE file system. */
static void overlay_mount(void)
{
	char *options, *empty, *fuse;

	fuse_mount();
	fuse = mounted;
	empty = path_in_dir("empty");
	mounted = path_in_dir("overlay");
	need(!mkdir(empty, 0755) && !mkdir(mounted, 0755), "mkdir");
	need(asprintf(&options, "lowerdir=%s:%s", fuse, empty) > 0, "asprintf");
	skip_unless(mount("none", mounted, "overlay", MS_RDONLY, options) == 0, "overlay");
}

static void *fuse_read_thread(void *arg)
{
	read(fds[0], block, PAGE);
	return arg;
}

static void wait_file_position(void)
{
	fds[0] = open(fuse_file(), O_RDWR);
	beside(fuse_read_thread);
	read(fds[0], block, PAGE);
}

static void *fuse_write_thread(void *arg)
{
	pwrite(fds[0], block, PAGE, 0);
	return arg;
}

static void wait_inode_lock(void)
{
	fds[0] = open(fuse_file(), O_RDWR);
	beside(fuse_write_thread);
	pwrite(fds[0], block, PAGE, PAGE);
}

static void wait_fsync_lock(void)
{
	fds[0] = open(fuse_file(), O_RDWR);
	beside(fuse_write_thread);
	fsync(fds[0]);
}

static void wait_fuse_dirty(void)
{
	fds[0] = open(fuse_file(), O_RDWR);
	for (off_t at = 0;; at += PAGE)
		pwrite(fds[0], block, PAGE, at);
}

/* Another thread looks another name up in the same directory. */
static void wait_other_lookup(void)
{
	struct stat st;

	beside(fuse_open_thread);
	stat(path_in_dir("fuse/other"), &st);
}

static void wait_truncate(void)
{
	fds[0] = open(fuse_file(), O_RDWR);
	beside(fuse_write_thread);
	ftruncate(fds[0], 0);
}

static void *fuse_unlink_thread(void *arg)
{
	unlink(fuse_file());
	return arg;
}

/* Another thread removes the same file. */
static void wait_directory_lock(void)
{
	beside(fuse_unlink_thread);
	unlink(fuse_file());
}

static void wait_sendfile(void)
{
	sendfile(fds[1], open(fuse_file(), O_RDWR), NULL, PAGE);
}

static void fuse_mount_and_pipe(void)
{
	make_pipe();
	fuse_mount();
}

/* Attaches a loop device to a file, until its last descriptor is closed. */
static void loop_attach(const char *file)
{
	struct loop_config config = { .info.lo_flags = LO_FLAGS_AUTOCLEAR };
	int control = open("/dev/loop-control", O_RDWR), number;
	char name[32];

	config.fd = (uint32_t)open(file, O_RDWR);
	skip_unless(control >= 0, "/dev/loop-control");
	do { /* another may take the free one first */
		number = ioctl(control, LOOP_CTL_GET_FREE);
		snprintf(name, sizeof(name), "/dev/loop%d", number);
		fds[0] = open(name, O_RDWR);
		skip_unless(number >= 0 && fds[0] >= 0, name);
	} while (ioctl(fds[0], LOOP_CONFIGURE, &config) && !close(fds[0]));
}

static void loop_on_fuse(void)
{
	fuse_mount();
	loop_attach(fuse_file());
}

static void wait_direct_read(void)
{
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	fcntl(fds[0], F_SETFL, O_DIRECT);
	read(fds[0], page, PAGE);
}

/* A frozen ext4 on a loop device. */
static void thaw(void)
{
	ioctl(fds[1], FITHAW, 0);
}

static void frozen_mount(void)
{
	char *image, *command;

	own_mounts("ext4");
	image = path_in_dir("image");
	need(asprintf(&command, "truncate -s 8M %s && mkfs.ext4 -q %s", image, image) > 0,
	     "asprintf");
	if (system(command))
		skip("mkfs.ext4");
	loop_attach(image);
	need(asprintf(&command, "/proc/self/fd/%d", fds[0]) > 0, "asprintf");
	need(mount(realpath(command, NULL), mounted, "ext4", 0, NULL) == 0, "mount ext4");
	need(creat(fuse_file(), 0600) >= 0, "creat");
	fds[1] = open(mounted, O_RDONLY);
	need(ioctl(fds[1], FIFREEZE, 0) == 0, "FIFREEZE");
	undo = thaw;
}

static void wait_frozen_write(void)
{
	write(open(fuse_file(), O_WRONLY), block, PAGE);
}

static void wait_frozen_mkdir(void)
{
	mkdir(path_in_dir("ext4/new"), 0755);
}

static void wait_overlay_read(void)
{
	read(open(fuse_file(), O_RDONLY), block, PAGE);
}

/* A process that dumps its core into the FUSE file system. */
static void core_begin(void)
{
	struct rlimit most = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_CORE, &most);
	need(chdir(mounted) == 0, mounted);
}

static void wait_core(void)
{
	core_begin();
	abort();
}

static void *abort_thread(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "helper");
	wait_until_asleep(getpid(), getpid());
	abort();
}

static void wait_core_thread(void)
{
	pthread_t thread;

	core_begin();
	need(pthread_create(&thread, NULL, abort_thread, NULL) == 0, "pthread_create");
	pause();
}

/* Control groups, which end with the keeper. */

static char *group;

static void put(const char *name, const char *format, ...)
{
	char *path, text[64];
	va_list args;
	int fd;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	need(asprintf(&path, "%s/%s", group, name) > 0, "asprintf");
	fd = open(path, O_WRONLY);
	need(fd >= 0 && write(fd, text, strlen(text)) > 0, path);
	close(fd);
}

static void group_remove(void)
{
	if (!strncmp(kind->name, "frozen-v1", 9))
		put("freezer.state", "THAWED");
	for (int i = 0; i < 100 && rmdir(group); i++)
		usleep(50000);
}

static void group_make(const char *root)
{
	need(asprintf(&group, "%s/stackd-kinds-%d", root, getpid()) > 0, "asprintf");
	skip_unless(mkdir(group, 0755) == 0, group);
	undo = group_remove;
}

static void group_v1_freezer(void)
{
	group_make("/sys/fs/cgroup/freezer");
}

static void group_v2(void)
{
	group_make(access("/sys/fs/cgroup/cgroup.procs", F_OK) ? "/sys/fs/cgroup/unified"
							       : "/sys/fs/cgroup");
}

static void group_v1_memory(void)
{
	group_make("/sys/fs/cgroup/memory");
	put("memory.limit_in_bytes", "4M");
	put("memory.oom_control", "1");
	make_pipe();
}

static void keep_frozen_v1(pid_t waiter)
{
	put("tasks", "%d", waiter);
	wait_until_asleep(waiter, waiter);
	put("freezer.state", "FROZEN");
}

static void keep_frozen_v2(pid_t waiter)
{
	put("cgroup.procs", "%d", waiter);
	wait_until_asleep(waiter, waiter);
	put("cgroup.freeze", "1");
}

static void wait_pipe(void)
{
	make_pipe();
	wait_pipe_read();
}

static void keep_in_group(pid_t waiter)
{
	put("tasks", "%d", waiter);
	write(fds[1], block, 1);
}

static void wait_memory(void)
{
	wait_pipe_read(); /* until it is in its group */
	for (;;)
		memset(mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0),
		       1, 1 << 20);
}

static void mount_tracefs(void)
{
	own_mounts("trace");
	skip_unless(mount("none", mounted, "tracefs", 0, NULL) == 0, "tracefs");
	fds[0] = open(path_in_dir("trace/trace_pipe"), O_RDONLY);
	skip_unless(fds[0] >= 0, "trace_pipe");
}

static void wait_vm_read(void)
{
	void *page = missing_page();

	struct iovec from = { page, 1 }, to = { block, 1 };

	process_vm_readv(getpid(), &to, 1, &from, 1, 0);
}

/* An automount point whose daemon does not answer. */
static void set_up_autofs(void)
{
	char options[128];

	own_mounts("autofs");
	make_pipe();
	snprintf(options, sizeof(options), "fd=%d,pgrp=%d,minproto=5,maxproto=5,indirect", fds[1],
		 getpgrp());
	skip_unless(mount("kinds", mounted, "autofs", 0, options) == 0, "autofs");
}

static void wait_autofs(void)
{
	setpgid(0, 0);
	open(fuse_file(), O_RDONLY);
	perror("autofs");
}

static const struct kind kinds[] = {
	{ "futex", "futex", NULL, wait_futex, NULL, 0, 0 },
	{ "futexes", "futexes", NULL, wait_futexes, NULL, 0, 0 },
	{ "pi-mutex", "pi-mutex", NULL, wait_pi, NULL, 0, 0 },
	{ "mutex", "mutex", NULL, wait_mutex, NULL, 0, 0 },
	{ "cond", "cond", NULL, wait_cond, NULL, 0, 0 },
	{ "sem", "sem", NULL, wait_sem, NULL, 0, 0 },
	{ "rwlock", "rwlock", NULL, wait_rwlock, NULL, 0, 0 },
	{ "barrier", "barrier", NULL, wait_barrier, NULL, 0, 0 },
	{ "join", "join", NULL, wait_join, NULL, 0, 0 },
	{ "semop", "sysv-sem", own_ipc, wait_semop, NULL, 0, 0 },
	{ "msgrcv", "msgrcv", own_ipc, wait_msgrcv, NULL, 0, 0 },
	{ "msgsnd", "msgsnd", own_ipc, wait_msgsnd, NULL, 0, 0 },
	{ "mq-receive", "mq", own_ipc, wait_mq_receive, NULL, 0, 0 },
	{ "mq-send", "mq", own_ipc, wait_mq_send, NULL, 0, 0 },
	{ "pipe-read", "pipe-read", make_pipe, wait_pipe_read, NULL, 0, 0 },
	{ "pipe-write", "pipe-write", make_pipe, wait_pipe_write, NULL, 0, 0 },
	{ "splice", "pipe-read", make_pipe, wait_splice, NULL, 0, 0 },
	{ "tee", "pipe-read", make_pipe, wait_tee, NULL, 0, 0 },
	{ "vmsplice", "pipe-write", make_pipe, wait_vmsplice, NULL, 0, 0 },
	{ "pipe-lock", "kernel-lock", make_pipe, wait_pipe_lock, NULL, 0, 0 },
	{ "fifo-open", "fifo-open", NULL, wait_fifo, NULL, 0, 0 },
	{ "eventfd", "eventfd", NULL, wait_eventfd, NULL, 0, 0 },
	{ "eventfd-write", "eventfd", NULL, wait_eventfd_write, NULL, 0, 0 },
	{ "timerfd", "timerfd", NULL, wait_timerfd, NULL, 0, 0 },
	{ "signalfd", "signalfd", NULL, wait_signalfd, NULL, 0, 0 },
	{ "inotify", "inotify", NULL, wait_inotify, NULL, 0, 0 },
	{ "fanotify", "fanotify", make_scanner, wait_fanotify, NULL, 0, 0 },
	{ "scanned", "scanned", make_scanner, wait_scanned, NULL, 0, 0 },
	{ "uffd-read", "userfaultfd-server", NULL, wait_userfaultfd_read, NULL, 0, 0 },
	{ "uffd-page", "userfaultfd", NULL, wait_page_of_userfaultfd, NULL, 0, 0 },
	{ "epoll", "epoll", NULL, wait_epoll, NULL, 0, 0 },
	{ "program-lock", "program-lock", NULL, ProcSleep, NULL, 0, 0 },
	{ "replication", "replication", NULL, SyncRepWaitForLSN, NULL, 0, 0 },
	{ "poll", "poll", NULL, wait_poll, NULL, 0, 0 },
	{ "ppoll-pidfd", "poll", NULL, wait_ppoll, NULL, 0, 0 },
	{ "select", "select", NULL, wait_select, NULL, 0, 0 },
	{ "io_uring", "io_uring", need_io_uring, wait_io_uring, NULL, 0, 0 },
	{ "aio", "aio", NULL, wait_aio, NULL, 0, 0 },
	{ "nanosleep", "sleep", NULL, wait_nanosleep, NULL, 0, 0 },
	{ "pause", "pause", NULL, wait_pause, NULL, 0, 0 },
	{ "sigwait", "sigwait", NULL, wait_sigwait, NULL, 0, 0 },
	{ "sigsuspend", "sigsuspend", NULL, wait_sigsuspend, NULL, 0, 0 },
	{ "child", "child", NULL, wait_child, NULL, 0, 0 },
	{ "pidfd", "child", NULL, wait_pidfd, NULL, 0, 0 },
	{ "vfork", "vfork", NULL, wait_vfork, NULL, 0, 0 },
	{ "stop", "stopped", NULL, wait_stop, NULL, 0, 0 },
	{ "traced", "debugger", NULL, wait_pause, keep_traced, 0, 0 },
	{ "exec", "exec", block_and_make_pipe, wait_exec, keep_other_traced, 0, 0 },
	{ "pid-ns", "child", own_pids, wait_pid_namespace, keep_other_traced, 0, 0 },
	{ "seccomp", "seccomp", NULL, wait_seccomp, NULL, 0, 0 },
	{ "seccomp-recv", "seccomp-server", NULL, wait_seccomp_notify, NULL, 0, 0 },
	{ "flock", "flock", make_file, wait_flock, NULL, 0, 0 },
	{ "fcntl", "fcntl", keep_fcntl, wait_fcntl, NULL, 0, 0 },
	{ "ofd-lock", "fcntl", make_file, wait_ofd, NULL, 0, 0 },
	{ "lease", "lease", NULL, wait_lease, NULL, 0, 0 },
	{ "tty-read", "tty-read", make_pty, wait_tty_read, NULL, 0, 0 },
	{ "tty-write", "tty-write", make_pty, wait_tty_write, NULL, 0, 0 },
	{ "tcp", "tcp", make_tcp, wait_recv, NULL, 0, 0 },
	{ "tcp-all", "tcp", make_tcp, wait_recv_all, NULL, 0, 0 },
	{ "tcp-send", "socket-send", make_tcp, wait_send, NULL, 0, 0 },
	{ "accept", "accept", make_tcp_listener, wait_accept, NULL, 0, 0 },
	{ "connect", "connect", NULL, wait_connect, NULL, 0, 0 },
	{ "linger", "linger", NULL, wait_linger, NULL, 0, 0 },
	{ "socket-lock", "socket-lock", make_tcp, wait_socket_lock, NULL, 0, 0 },
	{ "mptcp", "tcp", make_mptcp, wait_recv, NULL, 0, 0 },
	{ "udp", "udp", make_udp, wait_recv, NULL, 0, 0 },
	{ "unix", "unix", make_unix, wait_recv, NULL, 0, 0 },
	{ "unix-dgram", "unix", make_unix_dgram, wait_recv, NULL, 0, 0 },
	{ "unix-packets", "unix", make_unix_packets, wait_recv, NULL, 0, 0 },
	{ "unix-send", "socket-send", make_unix, wait_send, NULL, 0, 0 },
	{ "unix-dg-send", "unix-send", NULL, wait_unix_dgram_send, NULL, 0, 0 },
	{ "unix-accept", "accept", make_unix_listener, wait_accept, NULL, 0, 0 },
	{ "unix-connect", "connect", make_unix_listener, wait_unix_connect, NULL, 0, 0 },
	{ "netlink", "netlink", make_netlink, wait_recv, NULL, 0, 0 },
	{ "packet", "packet", make_packet, wait_recv, NULL, 0, 0 },
	{ "raw", "socket", make_raw, wait_recv, NULL, 0, 0 },
	{ "vsock", "vsock", make_vsock, wait_recv, NULL, 0, 0 },
	{ "vsock-accept", "accept", make_vsock_listener, wait_accept, NULL, 0, 0 },
	{ "tun", "tun", make_tun, wait_read, NULL, 0, 0 },
	{ "kmsg", "kernel-log", make_kmsg, wait_kmsg, NULL, 0, 0 },
	{ "trace-pipe", "trace", mount_tracefs, wait_read, NULL, 0, 0 },
	{ "guest", "kvm", need_guest, wait_guest, NULL, 0, 0 },
	{ "fuse-init", "fuse", fuse_mount, wait_fuse_open, NULL, FUSE_INIT, 0 },
	{ "fuse-lookup", "fuse", fuse_mount, wait_fuse_open, NULL, FUSE_LOOKUP, 0 },
	{ "fuse-open", "fuse", fuse_mount, wait_fuse_open, NULL, FUSE_OPEN, 0 },
	{ "fuse-read", "file-read", fuse_mount, wait_fuse_read, NULL, FUSE_READ, 0 },
	{ "fuse-mmap", "page-fault", fuse_mount, wait_fuse_mmap, NULL, FUSE_READ, 0 },
	{ "fuse-direct", "fuse", fuse_mount, wait_fuse_read, NULL, FUSE_READ, FOPEN_DIRECT_IO },
	{ "fuse-flush", "fuse", fuse_mount, wait_fuse_flush, NULL, FUSE_FLUSH, 0 },
	{ "fuse-fsync", "fuse", fuse_mount, wait_fuse_fsync, NULL, FUSE_FSYNC, 0 },
	{ "fuse-wb", "writeback", fuse_mount, wait_fuse_write_fsync, NULL, FUSE_WRITE, 0 },
	{ "fuse-readdir", "fuse", fuse_mount, wait_fuse_readdir, NULL, FUSE_READDIR, 0 },
	{ "fuse-statfs", "fuse", fuse_mount, wait_fuse_statfs, NULL, FUSE_STATFS, 0 },
	{ "fuse-lock", "fuse", fuse_mount, wait_fuse_lock, NULL, FUSE_SETLKW, 0 },
	{ "same-lookup", "lookup", fuse_mount, wait_same_lookup, NULL, FUSE_LOOKUP, 0 },
	{ "mmap-lock", "mmap-lock", fuse_mount, wait_mmap_lock, NULL, FUSE_WRITE, 0 },
	{ "ps", "mmap-lock", fuse_mount, wait_cmdline, NULL, FUSE_WRITE, 0 },
	{ "file-position", "file-position", fuse_mount, wait_file_position, NULL, FUSE_READ,
	  FOPEN_DIRECT_IO },
	{ "inode-lock", "inode-lock", fuse_mount, wait_inode_lock, NULL, FUSE_WRITE,
	  FOPEN_DIRECT_IO },
	{ "fsync-lock", "inode-lock", fuse_mount, wait_fsync_lock, NULL, FUSE_WRITE,
	  FOPEN_DIRECT_IO },
	{ "truncate", "inode-lock", fuse_mount, wait_truncate, NULL, FUSE_WRITE, FOPEN_DIRECT_IO },
	{ "other-lookup", "inode-lock", fuse_mount, wait_other_lookup, NULL, FUSE_LOOKUP, 0 },
	{ "fuse-dirty", "dirty-pages", fuse_mount, wait_fuse_dirty, NULL, FUSE_WRITE, 0 },
	{ "dir-lock", "inode-lock", fuse_mount, wait_directory_lock, NULL, FUSE_UNLINK, 0 },
	{ "sendfile", "file-read", fuse_mount_and_pipe, wait_sendfile, NULL, FUSE_READ, 0 },
	{ "overlay-open", "fuse", overlay_mount, wait_fuse_open, NULL, FUSE_OPEN, 0 },
	{ "overlay-read", "file-read", overlay_mount, wait_overlay_read, NULL, FUSE_READ, 0 },
	{ "loop-read", "file-read", loop_on_fuse, wait_read, NULL, FUSE_READ, 0 },
	{ "loop-direct", "disk", loop_on_fuse, wait_direct_read, NULL, FUSE_READ, 0 },
	{ "fsfreeze-write", "fsfreeze", frozen_mount, wait_frozen_write, NULL, 0, 0 },
	{ "fsfreeze-mkdir", "fsfreeze", frozen_mount, wait_frozen_mkdir, NULL, 0, 0 },
	{ "vm-read", "userfaultfd", NULL, wait_vm_read, NULL, 0, 0 },
	{ "frozen-v1", "frozen", group_v1_freezer, wait_pause, keep_frozen_v1, 0, 0 },
	{ "frozen-v1-pipe", "frozen", group_v1_freezer, wait_pipe, keep_frozen_v1, 0, 0 },
	{ "frozen-v2", "frozen", group_v2, wait_pause, keep_frozen_v2, 0, 0 },
	{ "memory-max", "memory-max", group_v1_memory, wait_memory, keep_in_group, 0, 0 },
	{ "core", "fuse", fuse_mount, wait_core, NULL, FUSE_LOOKUP, 0 },
	{ "core-thread", "unknown", fuse_mount, wait_core_thread, NULL, FUSE_LOOKUP, 0 },
	{ "autofs", "autofs", set_up_autofs, wait_autofs, NULL, 0, 0 },
};

static void keep(void)
{
	const pid_t keeper = getpid();
	pid_t pid;

	if (kind->set_up)
		kind->set_up();
	if (fork_helper(&pid)) {
		prctl(PR_SET_NAME, kind->name);
		kind->wait();
		if (getppid() == keeper)
			fprintf(stderr, "%s: did not wait: %s\n", kind->name, strerror(errno));
		exit(1);
	}
	printf("kind %s %d %s\n", kind->name, pid, kind->reason);
	fflush(stdout);
	if (kind->keep)
		kind->keep(pid);
	read(end_fds[0], block, 1);
	kill(pid, SIGKILL);
	if (undo)
		undo();
	exit(0);
}

int main(int argc, char **argv)
{
	pid_t pid;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; argc < 3 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		printf("%s %s\n", kinds[i].name, kinds[i].reason);
	if (argc < 3)
		return 0;
	dir = argv[1];
	need(pipe(end_fds) == 0, "pipe");
	for (int arg = 2; arg < argc; arg++)
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			if (strcmp(kinds[i].name, argv[arg]) != 0)
				continue;
			kind = &kinds[i];
			if (fork_helper(&pid)) {
				close(end_fds[1]);
				prctl(PR_SET_NAME, "helper");
				keep();
			}
		}
	wait_for_start();
	close(end_fds[1]);
	while (wait(NULL) > 0)
		;
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_WAIT_REASON_H
#define STACKD_COMMON_WAIT_REASON_H

/*
 * The reasons for which threads wait, with a word for programs and filters and a text for people.
 * Constant tables; any thread.
 */

/*
 * X(NAME, word, text) for each reason, in the order of stackctl(1), which has the same words. The
 * text can follow "waits for". The words are on the wire: a word never changes its meaning.
 */
#define WAIT_REASONS(X)                                                                            \
	X(MUTEX, "mutex", "a mutex of the program (pthread_mutex_lock)")                           \
	X(RWLOCK, "rwlock", "a read-write lock of the program (pthread_rwlock)")                   \
	X(PI_MUTEX, "pi-mutex", "a lock (futex with priority inheritance)")                        \
	X(COND, "cond", "a condition (pthread_cond_wait)")                                         \
	X(SEM, "sem", "a semaphore of the program (sem_wait)")                                     \
	X(BARRIER, "barrier", "a barrier of the program (pthread_barrier_wait)")                   \
	X(JOIN, "join", "a thread to end (pthread_join)")                                          \
	X(FUTEX, "futex", "a futex: a lock or a condition of the program")                         \
	X(FUTEXES, "futexes", "several futexes")                                                   \
	X(SYSV_SEM, "sysv-sem", "a System V semaphore")                                            \
	X(FLOCK, "flock", "a file lock (flock)")                                                   \
	X(FCNTL, "fcntl", "a file lock (fcntl)")                                                   \
	X(LEASE, "lease", "a file lease to be given back")                                         \
	X(FILE_LOCK, "file-lock", "a file lock")                                                   \
	X(PIPE_READ, "pipe-read", "data from a pipe")                                              \
	X(PIPE_WRITE, "pipe-write", "room in a pipe")                                              \
	X(FIFO_OPEN, "fifo-open", "the other end of a FIFO to be opened")                          \
	X(EVENTFD, "eventfd", "an eventfd")                                                        \
	X(TTY_READ, "tty-read", "input from a terminal")                                           \
	X(TTY_WRITE, "tty-write", "a terminal to take output")                                     \
	X(MQ, "mq", "a POSIX message queue")                                                       \
	X(MSGRCV, "msgrcv", "a System V message")                                                  \
	X(MSGSND, "msgsnd", "room in a System V message queue")                                    \
	X(ACCEPT, "accept", "a connection (accept)")                                               \
	X(CONNECT, "connect", "a connection to be made (connect)")                                 \
	X(TCP, "tcp", "data from a TCP socket")                                                    \
	X(UDP, "udp", "a packet from a UDP socket")                                                \
	X(UNIX, "unix", "data from a Unix socket")                                                 \
	X(UNIX_SEND, "unix-send", "room at the receiver of a Unix socket")                         \
	X(NETLINK, "netlink", "a message from a netlink socket")                                   \
	X(PACKET, "packet", "a packet from a packet socket")                                       \
	X(VSOCK, "vsock", "data from a vsock")                                                     \
	X(SOCKET, "socket", "data from a socket")                                                  \
	X(SOCKET_SEND, "socket-send", "room to send on a socket")                                  \
	X(SOCKET_LOCK, "socket-lock", "a socket another thread is using")                          \
	X(EPOLL, "epoll", "events (epoll)")                                                        \
	X(POLL, "poll", "events (poll)")                                                           \
	X(SELECT, "select", "events (select)")                                                     \
	X(IO_URING, "io_uring", "io_uring to complete something")                                  \
	X(AIO, "aio", "asynchronous I/O (io_getevents)")                                           \
	X(INOTIFY, "inotify", "file events (inotify)")                                             \
	X(FANOTIFY, "fanotify", "file events (fanotify)")                                          \
	X(SLEEP, "sleep", "a timer (nanosleep)")                                                   \
	X(TIMERFD, "timerfd", "a timer (timerfd)")                                                 \
	X(KERNEL_TIMER, "kernel-timer", "a timer in the kernel")                                   \
	X(PAUSE, "pause", "a signal (pause)")                                                      \
	X(SIGWAIT, "sigwait", "a signal (sigwait)")                                                \
	X(SIGSUSPEND, "sigsuspend", "a signal (sigsuspend)")                                       \
	X(SIGNALFD, "signalfd", "a signal (signalfd)")                                             \
	X(CHILD, "child", "a child process (wait)")                                                \
	X(VFORK, "vfork", "its vfork child to exec or exit")                                       \
	X(EXEC, "exec", "the other threads to end (exec)")                                         \
	X(COREDUMP, "coredump", "the process's memory to be dumped (core)")                        \
	X(STOPPED, "stopped", "a signal to continue")                                              \
	X(DEBUGGER, "debugger", "a debugger")                                                      \
	X(SECCOMP, "seccomp", "a seccomp supervisor to decide")                                    \
	X(FROZEN, "frozen", "its cgroup or the system to be thawed")                               \
	X(PAGE_FAULT, "page-fault", "a page fault to be read from disk")                           \
	X(SWAP_IN, "swap-in", "memory to be swapped in")                                           \
	X(USERFAULTFD, "userfaultfd", "a page fault that a userfaultfd handles")                   \
	X(RECLAIM, "reclaim", "memory to be freed (reclaim)")                                      \
	X(MEMORY_HIGH, "memory-high", "its cgroup to use less memory (memory.high)")               \
	X(DIRTY_PAGES, "dirty-pages", "dirty pages to be written: it writes faster than the disk") \
	X(DISK_READ, "disk-read", "data to be read from disk")                                     \
	X(DISK_WRITE, "disk-write", "data to be written to disk")                                  \
	X(JOURNAL, "journal", "the file system's journal")                                         \
	X(DISK_QUEUE, "disk-queue", "the disk's queue to have room")                               \
	X(DISK, "disk", "disk I/O")                                                                \
	X(FUSE, "fuse", "a FUSE file system's program to answer")                                  \
	X(FUSE_SERVER, "fuse-server", "a request to its FUSE file system")                         \
	X(NFS, "nfs", "a network file system's server (NFS)")                                      \
	X(SMB, "smb", "a network file system's server (SMB)")                                      \
	X(P9, "9p", "a network file system's server (9p)")                                         \
	X(KERNEL_MUTEX, "kernel-mutex", "a lock in the kernel (mutex)")                            \
	X(KERNEL_RWSEM, "kernel-rwsem", "a lock in the kernel (rwsem)")                            \
	X(KERNEL_SEM, "kernel-sem", "a lock in the kernel (semaphore)")                            \
	X(KERNEL_RT_MUTEX, "kernel-rt-mutex", "a lock in the kernel (rt_mutex)")                   \
	X(KERNEL_PERCPU_RWSEM, "kernel-percpu-rwsem", "a lock in the kernel (per-CPU rwsem)")      \
	X(RCU, "rcu", "all CPUs to pass a grace period (RCU)")                                     \
	X(GPU, "gpu", "the GPU")                                                                   \
	X(KVM, "kvm", "its guest CPU to have work")                                                \
	X(WORK, "work", "work")                                                                    \
	X(CPU, "cpu", "a CPU")                                                                     \
	X(THROTTLED, "throttled", "its cgroup to get CPU quota")                                   \
	X(UNKNOWN, "unknown", NULL)

enum wait_reason {
#define WAIT_REASON_MEMBER(name, word, text) REASON_##name,
	WAIT_REASONS(WAIT_REASON_MEMBER)
#undef WAIT_REASON_MEMBER
		WAIT_REASON_N,
};

/* Returns the word of a reason, such as "flock". */
const char *wait_reason_word(enum wait_reason reason);

/*
 * Returns the text of a reason, which can follow "waits for", such as "a file lock (flock)"; NULL
 * for REASON_UNKNOWN.
 */
const char *wait_reason_text(enum wait_reason reason);

/* Returns the reason that a word stands for; WAIT_REASON_N for NULL and for other words. */
enum wait_reason wait_reason_find(const char *word);

#endif

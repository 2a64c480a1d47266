/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_WAIT_REASON_H
#define STACKD_COMMON_WAIT_REASON_H

/*
 * The reasons for which threads wait, with a word for programs and filters and a text for people.
 * Constant tables; any thread.
 */

#include <stdbool.h>

/*
 * X(NAME, word, text) for each reason, in the order of stackctl(1), which has the same words. The
 * text can follow "waits for". The words are on the wire: a word never changes its meaning.
 */
#define WAIT_REASONS(X)                                                                       \
	X(MUTEX, "mutex", "a mutex of the program (pthread_mutex_lock)")                      \
	X(RWLOCK, "rwlock", "a read-write lock of the program (pthread_rwlock)")              \
	X(PI_MUTEX, "pi-mutex", "a lock (futex with priority inheritance)")                   \
	X(COND, "cond", "a condition (pthread_cond_wait)")                                    \
	X(SEM, "sem", "a semaphore of the program (sem_wait)")                                \
	X(BARRIER, "barrier", "a barrier of the program (pthread_barrier_wait)")              \
	X(JOIN, "join", "a thread to end (pthread_join)")                                     \
	X(FUTEX, "futex", "a futex: a lock or a condition of the program")                    \
	X(FUTEXES, "futexes", "several futexes")                                              \
	X(PROGRAM_LOCK, "program-lock", "a lock that the program makes itself")               \
	X(GIL, "gil", "the lock of Python's interpreter (GIL)")                               \
	X(SYSV_SEM, "sysv-sem", "a System V semaphore")                                       \
	X(FLOCK, "flock", "a file lock (flock)")                                              \
	X(FCNTL, "fcntl", "a file lock (fcntl)")                                              \
	X(LEASE, "lease", "a file lease to be given back")                                    \
	X(FILE_LOCK, "file-lock", "a file lock")                                              \
	X(PIPE_READ, "pipe-read", "data from a pipe")                                         \
	X(PIPE_WRITE, "pipe-write", "room in a pipe")                                         \
	X(FIFO_OPEN, "fifo-open", "the other end of a FIFO to be opened")                     \
	X(EVENTFD, "eventfd", "an eventfd")                                                   \
	X(TTY_READ, "tty-read", "input from a terminal")                                      \
	X(TTY_WRITE, "tty-write", "a terminal to take output")                                \
	X(TTY_OPEN, "tty-open", "a terminal line to be ready (carrier)")                      \
	X(MQ, "mq", "a POSIX message queue")                                                  \
	X(MSGRCV, "msgrcv", "a System V message")                                             \
	X(MSGSND, "msgsnd", "room in a System V message queue")                               \
	X(ACCEPT, "accept", "a connection (accept)")                                          \
	X(CONNECT, "connect", "a connection to be made (connect)")                            \
	X(TCP, "tcp", "data from a TCP socket")                                               \
	X(UDP, "udp", "a packet from a UDP socket")                                           \
	X(UNIX, "unix", "data from a Unix socket")                                            \
	X(UNIX_SEND, "unix-send", "room at the receiver of a Unix socket")                    \
	X(NETLINK, "netlink", "a message from a netlink socket")                              \
	X(PACKET, "packet", "a packet from a packet socket")                                  \
	X(VSOCK, "vsock", "data from a vsock")                                                \
	X(SOCKET, "socket", "data from a socket")                                             \
	X(SOCKET_SEND, "socket-send", "room to send on a socket")                             \
	X(LINGER, "linger", "its data to be sent (close with SO_LINGER)")                     \
	X(REPLICATION, "replication", "a replica to confirm a transaction")                   \
	X(REQUEST, "request", "the answer to a request it has sent (poll)")                   \
	X(TUN, "tun", "a packet from a TUN or TAP device")                                    \
	X(SOCKET_LOCK, "socket-lock", "a socket another thread is using")                     \
	X(EPOLL, "epoll", "events (epoll)")                                                   \
	X(POLL, "poll", "events (poll)")                                                      \
	X(SELECT, "select", "events (select)")                                                \
	X(IO_URING, "io_uring", "io_uring to complete something")                             \
	X(AIO, "aio", "asynchronous I/O (io_getevents)")                                      \
	X(INOTIFY, "inotify", "file events (inotify)")                                        \
	X(FANOTIFY, "fanotify", "file events (fanotify)")                                     \
	X(SLEEP, "sleep", "a timer (nanosleep)")                                              \
	X(TIMERFD, "timerfd", "a timer (timerfd)")                                            \
	X(KERNEL_TIMER, "kernel-timer", "a timer in the kernel")                              \
	X(PAUSE, "pause", "a signal (pause)")                                                 \
	X(SIGWAIT, "sigwait", "a signal (sigwait)")                                           \
	X(SIGSUSPEND, "sigsuspend", "a signal (sigsuspend)")                                  \
	X(SIGNALFD, "signalfd", "a signal (signalfd)")                                        \
	X(CHILD, "child", "a child process (wait)")                                           \
	X(VFORK, "vfork", "its vfork child to exec or exit")                                  \
	X(EXEC, "exec", "the other threads to end (exec)")                                    \
	X(COREDUMP, "coredump", "the process's memory to be dumped (core)")                   \
	X(STOPPED, "stopped", "a signal to continue")                                         \
	X(DEBUGGER, "debugger", "a debugger")                                                 \
	X(SECCOMP, "seccomp", "a seccomp supervisor to decide")                               \
	X(SECCOMP_SERVER, "seccomp-server", "a system call to decide on (seccomp)")           \
	X(SCANNED, "scanned", "a scanner to allow access to a file (fanotify)")               \
	X(KEY, "key", "a key to be made (request_key)")                                       \
	X(MODULE, "module", "a kernel module to be loaded")                                   \
	X(FIRMWARE, "firmware", "firmware to be loaded")                                      \
	X(USER_HELPER, "user-helper", "a program that the kernel started")                    \
	X(AUTOFS, "autofs", "an automount (autofs)")                                          \
	X(AUDIT, "audit", "the audit log to have room")                                       \
	X(KERNEL_LOG, "kernel-log", "a message of the kernel")                                \
	X(TRACE, "trace", "trace data of the kernel")                                         \
	X(PID_NS, "pid-ns", "the processes of its pid namespace to end")                      \
	X(NETDEV, "netdev", "a network device to be let go")                                  \
	X(NETNS, "netns", "network namespaces that are being made or removed")                \
	X(FROZEN, "frozen", "its cgroup or the system to be thawed")                          \
	X(PAGE_FAULT, "page-fault", "a page of a mapped file to be read (page fault)")        \
	X(SWAP_IN, "swap-in", "memory to be swapped in")                                      \
	X(USERFAULTFD, "userfaultfd", "a page fault that a userfaultfd handles")              \
	X(USERFAULTFD_SERVER, "userfaultfd-server", "a page fault to handle (userfaultfd)")   \
	X(MIGRATION, "migration", "a page that is being moved in memory")                     \
	X(HOST_PAGE, "host-page", "the host to read a page of this virtual machine")          \
	X(RECLAIM, "reclaim", "memory to be freed (reclaim)")                                 \
	X(MEMORY_HIGH, "memory-high", "its cgroup to use less memory (memory.high)")          \
	X(MEMORY_MAX, "memory-max", "its cgroup to have memory again (out of memory)")        \
	X(DIRTY_PAGES, "dirty-pages", "dirty pages to be written back: it writes faster")     \
	X(FILE_READ, "file-read", "data of a file to be read")                                \
	X(WRITEBACK, "writeback", "data to be written back (writeback)")                      \
	X(JOURNAL, "journal", "the file system's journal or transaction")                     \
	X(QUOTA, "quota", "disk quotas of the file system")                                   \
	X(DISK_FLUSH, "disk-flush", "the disk to write its cache (flush)")                    \
	X(DISK_QUEUE, "disk-queue", "the disk's queue to take its request")                   \
	X(DISK_RECOVERY, "disk-recovery", "a disk that recovers from an error (SCSI)")        \
	X(MD, "md", "a software RAID (md)")                                                   \
	X(DISK, "disk", "disk I/O")                                                           \
	X(IO, "io", "I/O, or a page that is in use")                                          \
	X(FUSE, "fuse", "a FUSE file system's program to answer")                             \
	X(FUSE_SERVER, "fuse-server", "a request to its FUSE file system")                    \
	X(NFS, "nfs", "a network file system's server (NFS)")                                 \
	X(SMB, "smb", "a network file system's server (SMB)")                                 \
	X(P9, "9p", "a network file system's server (9p)")                                    \
	X(CEPH, "ceph", "a network file system's server (Ceph)")                              \
	X(NETFS, "netfs", "a network file system's server")                                   \
	X(KERNEL_MUTEX, "kernel-mutex", "a lock in the kernel (mutex)")                       \
	X(KERNEL_RWSEM, "kernel-rwsem", "a lock in the kernel (rwsem)")                       \
	X(KERNEL_SEM, "kernel-sem", "a lock in the kernel (semaphore)")                       \
	X(KERNEL_RT_MUTEX, "kernel-rt-mutex", "a lock in the kernel (rt_mutex)")              \
	X(KERNEL_PERCPU_RWSEM, "kernel-percpu-rwsem", "a lock in the kernel (per-CPU rwsem)") \
	X(KERNEL_LOCK, "kernel-lock", "a lock in the kernel")                                 \
	X(MMAP_LOCK, "mmap-lock", "the memory map of a process (mmap lock)")                  \
	X(INODE_LOCK, "inode-lock", "a file or directory that others are using (inode lock)") \
	X(FILE_POSITION, "file-position", "an open file that another thread is using")        \
	X(LOOKUP, "lookup", "another thread that looks up the same name")                     \
	X(FILESYSTEM_FREEZE, "fsfreeze", "its file system to be thawed (fsfreeze)")           \
	X(RTNL, "rtnl", "the lock of the network's configuration (rtnl)")                     \
	X(CGROUP_LOCK, "cgroup-lock", "the lock of the control groups")                       \
	X(RCU, "rcu", "all CPUs to pass a grace period (RCU)")                                \
	X(GPU, "gpu", "the GPU or the display")                                               \
	X(KVM, "kvm", "its guest CPU to have work")                                           \
	X(INPUT, "input", "input from a device")                                              \
	X(SOUND, "sound", "a sound device")                                                   \
	X(USB, "usb", "a USB device")                                                         \
	X(RANDOM, "random", "random numbers")                                                 \
	X(WORKQUEUE, "workqueue", "work of the kernel to be done (workqueue)")                \
	X(KTHREAD, "kthread", "a kernel thread to start or end")                              \
	X(WORK, "work", "work")                                                               \
	X(CPU, "cpu", "a CPU")                                                                \
	X(THROTTLED, "throttled", "its cgroup to get CPU quota")                              \
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

/* True if a wait for this reason is one for a lock of a program or of a file: another has it. */
bool wait_reason_is_lock(enum wait_reason reason);

enum { WAIT_REASON_REFUSAL_LEN = 160 };

/*
 * Writes to `out` the message about a word, or a shell pattern, that stands for no reason: what a
 * word of an earlier version is called now, or which word is most like it.
 */
void wait_reason_refuse(const char *glob, char out[static WAIT_REASON_REFUSAL_LEN]);

#endif

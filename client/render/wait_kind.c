/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/wait_kind.h"

#include <stdbool.h>
#include <string.h>

#include "common/base.h"

enum {
	/*
	 * The maximum number of frames to look at, from the leaf on. Frames further up say what the
	 * thread does, but not why it waits.
	 */
	DEPTH_MAX = 24,
};

enum rank {
	ANY,   /* the function may be any frame; of several, the one nearest to the leaf counts */
	LEAF,  /* the function must be the leaf, not counting the frames of the scheduler */
	VAGUE, /* the function counts only if no function counts as ANY or LEAF */
};

static const char a_futex[] = "a futex: a lock or a condition of the program";

/*
 * Reasons of waits in words, each with the functions of the kernel (Linux 6.1 to 6.18) in whose
 * stacks a thread waits for that reason. Some reasons have several functions, because kernels
 * inline different ones. Functions marked __sched, such as the slow paths of locks, are missing in
 * stacks that are taken while the thread sleeps.
 */
static const struct {
	const char *words;
	enum rank rank;
	const char *functions; /* names of functions, separated by spaces */
} kinds[] = {
	{ "several futexes", ANY, "futex_wait_multiple" },
	{ "a lock (futex with priority inheritance)", ANY, "futex_lock_pi" },
	{ a_futex, ANY,
	  "futex_do_wait futex_wait_queue futex_wait_queue_me __futex_wait futex_wait "
	  "futex_wait_requeue_pi" },

	{ "data from a pipe", ANY, "anon_pipe_read fifo_pipe_read pipe_read pipe_wait_readable" },
	{ "room in a pipe", ANY,
	  "anon_pipe_write fifo_pipe_write pipe_write pipe_wait_writable wait_for_space" },
	{ "the other end of a FIFO to be opened", ANY, "fifo_open wait_for_partner" },

	{ "a connection (accept)", ANY, "inet_csk_accept unix_accept vsock_accept" },
	{ "a connection to be made (connect)", ANY,
	  "inet_wait_for_connect __inet_stream_connect sk_stream_wait_connect unix_stream_connect "
	  "vsock_connect" },
	{ "data from a TCP socket", ANY, "tcp_recvmsg_locked tcp_recvmsg tcp_splice_read" },
	{ "a packet from a UDP socket", ANY, "__skb_recv_udp udp_recvmsg udpv6_recvmsg" },
	{ "data from a Unix socket", ANY,
	  "unix_stream_data_wait unix_stream_read_generic __unix_dgram_recvmsg "
	  "unix_dgram_recvmsg" },
	{ "a message from a netlink socket", ANY, "netlink_recvmsg" },
	{ "a packet from a packet socket", ANY, "packet_recvmsg" },
	{ "data from a vsock", ANY, "vsock_connectible_wait_data vsock_connectible_recvmsg" },
	{ "room at the receiver of a Unix socket", ANY, "unix_wait_for_peer" },
	{ "room to send on a socket", ANY,
	  "sk_stream_wait_memory sock_alloc_send_pskb sock_wait_for_wmem" },
	{ "a socket another thread is using", ANY, "__lock_sock" },
	{ "data from a socket", VAGUE, "sk_wait_data __skb_wait_for_more_packets" },

	{ "events (epoll)", ANY, "ep_poll do_epoll_wait do_epoll_pwait" },
	{ "events (poll)", ANY, "do_poll do_sys_poll" },
	{ "events (select)", ANY, "do_select core_sys_select" },
	{ "io_uring to complete something", ANY, "io_cqring_wait io_cqring_schedule" },
	{ "asynchronous I/O (io_getevents)", ANY, "read_events do_io_getevents" },
	{ "an eventfd", ANY, "eventfd_read" },
	{ "a timer (timerfd)", ANY, "timerfd_read timerfd_read_iter" },
	{ "file events (inotify)", ANY, "inotify_read" },
	{ "file events (fanotify)", ANY, "fanotify_read" },
	{ "a timer (nanosleep)", ANY, "do_nanosleep hrtimer_nanosleep" },
	{ "a timer in the kernel", LEAF, "msleep msleep_interruptible usleep_range_state" },

	{ "a signal (pause)", ANY, "__x64_sys_pause __do_sys_pause sys_pause" },
	{ "a signal (sigwait)", ANY, "do_sigtimedwait" },
	{ "a signal (sigsuspend)", ANY, "sigsuspend" },
	{ "a signal (signalfd)", ANY, "signalfd_dequeue signalfd_read signalfd_read_iter" },
	{ "its vfork child to exec or exit", ANY, "wait_for_vfork_done" },
	{ "its vfork child to exec or exit", LEAF, "kernel_clone" },
	{ "a child process (wait)", ANY, "do_wait" },
	{ "the other threads to end (exec)", ANY, "de_thread" },
	{ "the process's memory to be dumped (core)", ANY, "coredump_wait" },
	{ "a debugger", ANY, "ptrace_stop" },
	{ "a seccomp supervisor to decide", ANY, "seccomp_do_user_notification" },
	{ "its cgroup or the system to be thawed", ANY, "do_freezer_trap __refrigerator" },

	{ "a file lock (fcntl)", ANY, "fcntl_setlk do_lock_file_wait" },
	{ "a file lock (flock)", ANY, "__do_sys_flock __x64_sys_flock __se_sys_flock" },
	{ "a file lease to be given back", ANY, "__break_lease" },
	{ "a file lock", VAGUE,
	  "locks_lock_inode_wait posix_lock_inode_wait flock_lock_inode_wait" },

	{ "memory to be swapped in", ANY, "do_swap_page" },
	{ "a page fault that a userfaultfd handles", ANY, "handle_userfault" },
	{ "a page fault to be read from disk", ANY, "filemap_fault" },
	{ "memory to be freed (reclaim)", ANY, "reclaim_throttle throttle_direct_reclaim" },
	{ "its cgroup to use less memory (memory.high)", ANY,
	  "mem_cgroup_handle_over_high __mem_cgroup_handle_over_high" },
	{ "dirty pages to be written: it writes faster than the disk", ANY,
	  "balance_dirty_pages balance_dirty_pages_ratelimited_flags" },
	{ "the file system's journal", ANY,
	  "jbd2_log_wait_commit jbd2_complete_transaction wait_transaction_locked "
	  "add_transaction_credits xlog_wait_on_iclog xlog_wait_on_iclog_lsn xfs_log_force_seq" },
	{ "data to be written to disk", ANY,
	  "folio_wait_writeback wb_wait_for_completion sync_inodes_sb __filemap_fdatawait_range "
	  "blkdev_issue_flush" },
	{ "the disk's queue to have room", ANY, "blk_mq_get_tag rq_qos_wait wbt_wait" },
	{ "a FUSE file system's program to answer", ANY,
	  "request_wait_answer fuse_request_wait_answer __fuse_simple_request" },
	{ "a request to its FUSE file system", ANY, "fuse_dev_do_read" },
	{ "a network file system's server (NFS)", ANY,
	  "rpc_wait_bit_killable nfs_wait_bit_killable nfs_wait_client_init_complete "
	  "nlmclnt_lock nlmclnt_block" },
	{ "a network file system's server (SMB)", ANY, "wait_for_response" },
	{ "a network file system's server (9p)", ANY, "p9_client_rpc" },
	{ "data to be read from disk", ANY, "filemap_update_page filemap_get_pages filemap_read" },
	{ "disk I/O", VAGUE,
	  "io_schedule io_schedule_timeout bit_wait_io folio_wait_bit_common __wait_on_buffer "
	  "submit_bio_wait blk_io_schedule blk_wait_io __iomap_dio_rw xfs_buf_iowait" },

	{ "a lock in the kernel (mutex)", ANY,
	  "mutex_lock __mutex_lock __mutex_lock_slowpath mutex_lock_interruptible "
	  "mutex_lock_killable __mutex_lock_killable_slowpath __mutex_lock_interruptible_slowpath "
	  "ww_mutex_lock __ww_mutex_lock" },
	{ "a lock in the kernel (rwsem)", ANY,
	  "rwsem_down_read_slowpath rwsem_down_write_slowpath down_read down_read_killable "
	  "down_read_interruptible down_write down_write_killable" },
	{ "a lock in the kernel (semaphore)", ANY,
	  "__down __down_common __down_interruptible __down_killable __down_timeout" },
	{ "a lock in the kernel (rt_mutex)", ANY, "rt_mutex_slowlock __rt_mutex_slowlock" },
	{ "a lock in the kernel (per-CPU rwsem)", ANY,
	  "percpu_rwsem_wait percpu_down_write __percpu_down_read" },
	{ "all CPUs to pass a grace period (RCU)", ANY,
	  "synchronize_rcu synchronize_rcu_normal synchronize_rcu_expedited __wait_rcu_gp "
	  "__synchronize_srcu rcu_barrier" },

	{ "input from a terminal", ANY, "n_tty_read" },
	{ "a terminal to take output", ANY, "n_tty_write tty_wait_until_sent" },
	{ "a System V message", ANY, "do_msgrcv" },
	{ "room in a System V message queue", ANY, "do_msgsnd" },
	{ "a System V semaphore", ANY, "do_semtimedop __do_semtimedop" },
	{ "a POSIX message queue", ANY, "wq_sleep do_mq_timedreceive do_mq_timedsend" },
	{ "the GPU", ANY, "dma_fence_default_wait drm_syncobj_array_wait_timeout" },
	{ "its guest CPU to have work", ANY, "kvm_vcpu_block kvm_vcpu_halt" },

	{ "work", LEAF,
	  "worker_thread rescuer_thread kthread_worker_fn smpboot_thread_fn kthreadd "
	  "io_wq_worker io_sq_thread vhost_task_fn vhost_worker kswapd kcompactd kjournald2 "
	  "rcu_gp_kthread rcu_gp_fqs_loop khugepaged oom_reaper kauditd_thread irq_thread "
	  "scsi_error_handler ksmd kthread" },
};

/*
 * True if a function's name is `word`. A suffix that the compiler appends, such as ".isra.0", is
 * ignored.
 */
static bool is_name(const char *name, const char *word, size_t length)
{
	return strcspn(name, ".") == length && memcmp(name, word, length) == 0;
}

static bool list_has(const char *words, const char *name)
{
	size_t n;

	for (;; words += n + 1) {
		n = strcspn(words, " ");
		if (is_name(name, words, n))
			return true;
		if (words[n] == '\0')
			return false;
	}
}

static bool starts_with(const char *name, const char *start)
{
	return strncmp(name, start, strlen(start)) == 0;
}

static bool is_scheduler(const struct wire_frame *frame)
{
	const char *name = frame->name;

	return name && (starts_with(name, "__schedule") || starts_with(name, "schedule_") ||
			starts_with(name, "preempt_schedule") || is_name(name, "schedule", 8));
}

size_t scheduler_frames(const struct wire_stack *kernel)
{
	size_t n = 0;

	while (n + 1 < kernel->frames.n && is_scheduler(&kernel->frames.v[n]))
		n++;
	return n;
}

/*
 * Returns the index of the first frame that belongs neither to the scheduler nor to helpers such as
 * wait_for_completion().
 */
static size_t leaf_find(const struct wire_stack *kernel)
{
	size_t n = scheduler_frames(kernel);

	while (n + 1 < kernel->frames.n && kernel->frames.v[n].name &&
	       (starts_with(kernel->frames.v[n].name, "wait_for_completion") ||
		starts_with(kernel->frames.v[n].name, "__wait_for_common")))
		n++;
	return n;
}

/*
 * Functions of libc and of language runtimes that wait on a futex, and what the thread waits for.
 */
static const struct {
	const char *words;
	const char *functions;
} futexes[] = {
	{ "a thread to end (pthread_join)",
	  "pthread_join __pthread_clockjoin_ex pthread_timedjoin_np pthread_clockjoin_np" },
	{ "a condition (pthread_cond_wait)",
	  "pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait "
	  "__pthread_cond_wait ___pthread_cond_wait __pthread_cond_timedwait "
	  "___pthread_cond_timedwait64 cnd_wait cnd_timedwait" },
	{ "a mutex of the program (pthread_mutex_lock)",
	  "pthread_mutex_lock __pthread_mutex_lock ___pthread_mutex_lock __lll_lock_wait "
	  "__GI___lll_lock_wait pthread_mutex_timedlock pthread_mutex_clocklock mtx_lock" },
	{ "a read-write lock of the program (pthread_rwlock)",
	  "pthread_rwlock_rdlock pthread_rwlock_wrlock __pthread_rwlock_rdlock "
	  "__pthread_rwlock_wrlock ___pthread_rwlock_rdlock ___pthread_rwlock_wrlock" },
	{ "a semaphore of the program (sem_wait)",
	  "sem_wait sem_timedwait sem_clockwait __new_sem_wait __new_sem_wait_slow64 "
	  "PyThread_acquire_lock_timed" },
	{ "a barrier of the program (pthread_barrier_wait)",
	  "pthread_barrier_wait __pthread_barrier_wait" },
};

/*
 * The maximum number of user frames to look at, from the leaf on. Functions further up may be about
 * another lock than the one that the thread waits for.
 */
enum { FUTEX_DEPTH = 5 };

static const char *futex_kind(const struct wire_stack *user)
{
	for (size_t i = 0; user && i < user->frames.n && i < FUTEX_DEPTH; i++) {
		const char *name = user->frames.v[i].name;

		for (size_t k = 0; name && k < ARRAY_SIZE(futexes); k++)
			if (list_has(futexes[k].functions, name))
				return futexes[k].words;
	}
	return NULL;
}

static const char *kernel_kind(const struct wire_stack *kernel)
{
	size_t leaf = kernel ? leaf_find(kernel) : 0;
	const char *vague = NULL;

	for (size_t i = leaf; kernel && i < kernel->frames.n && i < leaf + DEPTH_MAX; i++) {
		const char *name = kernel->frames.v[i].name;

		for (size_t k = 0; name && k < ARRAY_SIZE(kinds); k++) {
			if (!list_has(kinds[k].functions, name))
				continue;
			if (kinds[k].rank == ANY || (kinds[k].rank == LEAF && i == leaf))
				return kinds[k].words;
			if (kinds[k].rank == VAGUE && !vague)
				vague = kinds[k].words;
		}
	}
	return vague;
}

const char *wait_kind(const struct wire_stack *kernel, const struct wire_stack *user)
{
	const char *kind = kernel_kind(kernel), *futex = NULL;

	if (kind == a_futex)
		futex = futex_kind(user);
	return futex ? futex : kind;
}

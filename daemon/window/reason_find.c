/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/reason_find.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/window/task_state.h"

/*
 * KERNEL_DEPTH: the maximum number of kernel frames to look at, from the leaf on. Frames further up
 * say what the thread does, but not why it waits. USER_DEPTH: the same for user frames, of which
 * those further up may be about another lock than the one that the thread waits for.
 */
enum { KERNEL_DEPTH = 24, USER_DEPTH = 5 };

enum rank {
	ANY,   /* the function may be any frame; of several, the one nearest to the leaf counts */
	LEAF,  /* the function must be the leaf, not counting the frames of the scheduler */
	VAGUE, /* the function counts only if no function counts as ANY or LEAF */
};

struct row {
	enum wait_reason reason;
	enum rank rank;
	const char *functions; /* names of functions, separated by spaces */
};

/*
 * Reasons, each with the functions of the kernel (Linux 6.1 to 6.18) in whose stacks a thread waits
 * for that reason. Some reasons have several functions, because kernels inline different ones.
 * Functions marked __sched, such as the slow paths of locks, are missing in stacks that are taken
 * while the thread sleeps. No function is in two rows.
 */
static const struct row kernel_rows[] = {
	{ REASON_FUTEXES, ANY, "futex_wait_multiple" },
	{ REASON_PI_MUTEX, ANY, "futex_lock_pi" },
	{ REASON_FUTEX, ANY,
	  "futex_do_wait futex_wait_queue futex_wait_queue_me __futex_wait futex_wait "
	  "futex_wait_requeue_pi" },
	{ REASON_PIPE_READ, ANY, "anon_pipe_read fifo_pipe_read pipe_read pipe_wait_readable" },
	{ REASON_PIPE_WRITE, ANY,
	  "anon_pipe_write fifo_pipe_write pipe_write pipe_wait_writable wait_for_space" },
	{ REASON_FIFO_OPEN, ANY, "fifo_open wait_for_partner" },
	{ REASON_ACCEPT, ANY, "inet_csk_accept unix_accept vsock_accept" },
	{ REASON_CONNECT, ANY,
	  "inet_wait_for_connect __inet_stream_connect sk_stream_wait_connect "
	  "unix_stream_connect vsock_connect" },
	{ REASON_TCP, ANY, "tcp_recvmsg_locked tcp_recvmsg tcp_splice_read" },
	{ REASON_UDP, ANY, "__skb_recv_udp udp_recvmsg udpv6_recvmsg" },
	{ REASON_UNIX, ANY,
	  "unix_stream_data_wait unix_stream_read_generic __unix_dgram_recvmsg "
	  "unix_dgram_recvmsg" },
	{ REASON_NETLINK, ANY, "netlink_recvmsg" },
	{ REASON_PACKET, ANY, "packet_recvmsg" },
	{ REASON_VSOCK, ANY, "vsock_connectible_wait_data vsock_connectible_recvmsg" },
	{ REASON_UNIX_SEND, ANY, "unix_wait_for_peer" },
	{ REASON_SOCKET_SEND, ANY,
	  "sk_stream_wait_memory sock_alloc_send_pskb sock_wait_for_wmem" },
	{ REASON_SOCKET_LOCK, ANY, "__lock_sock" },
	{ REASON_SOCKET, VAGUE, "sk_wait_data __skb_wait_for_more_packets" },
	{ REASON_EPOLL, ANY, "ep_poll do_epoll_wait do_epoll_pwait" },
	{ REASON_POLL, ANY, "do_poll do_sys_poll" },
	{ REASON_SELECT, ANY, "do_select core_sys_select" },
	{ REASON_IO_URING, ANY, "io_cqring_wait io_cqring_schedule" },
	{ REASON_AIO, ANY, "read_events do_io_getevents" },
	{ REASON_EVENTFD, ANY, "eventfd_read" },
	{ REASON_TIMERFD, ANY, "timerfd_read timerfd_read_iter" },
	{ REASON_INOTIFY, ANY, "inotify_read" },
	{ REASON_FANOTIFY, ANY, "fanotify_read" },
	{ REASON_SLEEP, ANY, "do_nanosleep hrtimer_nanosleep" },
	{ REASON_KERNEL_TIMER, LEAF, "msleep msleep_interruptible usleep_range_state" },
	{ REASON_PAUSE, ANY, "__x64_sys_pause __do_sys_pause sys_pause" },
	{ REASON_SIGWAIT, ANY, "do_sigtimedwait" },
	{ REASON_SIGSUSPEND, ANY, "sigsuspend" },
	{ REASON_SIGNALFD, ANY, "signalfd_dequeue signalfd_read signalfd_read_iter" },
	{ REASON_VFORK, ANY, "wait_for_vfork_done" },
	{ REASON_VFORK, LEAF, "kernel_clone" },
	{ REASON_CHILD, ANY, "do_wait" },
	{ REASON_EXEC, ANY, "de_thread" },
	{ REASON_COREDUMP, ANY, "coredump_wait" },
	{ REASON_DEBUGGER, ANY, "ptrace_stop" },
	{ REASON_SECCOMP, ANY, "seccomp_do_user_notification" },
	{ REASON_FROZEN, ANY, "do_freezer_trap __refrigerator" },
	/* do_freezer_trap() is inlined there; the other waits in it have functions of their own. */
	{ REASON_FROZEN, LEAF, "get_signal" },
	{ REASON_FCNTL, ANY, "fcntl_setlk do_lock_file_wait" },
	{ REASON_FLOCK, ANY, "__do_sys_flock __x64_sys_flock __se_sys_flock" },
	{ REASON_LEASE, ANY, "__break_lease" },
	{ REASON_FILE_LOCK, VAGUE,
	  "locks_lock_inode_wait posix_lock_inode_wait flock_lock_inode_wait" },
	{ REASON_SWAP_IN, ANY, "do_swap_page" },
	{ REASON_USERFAULTFD, ANY, "handle_userfault" },
	{ REASON_PAGE_FAULT, ANY, "filemap_fault" },
	{ REASON_RECLAIM, ANY, "reclaim_throttle throttle_direct_reclaim" },
	{ REASON_MEMORY_HIGH, ANY, "mem_cgroup_handle_over_high __mem_cgroup_handle_over_high" },
	{ REASON_DIRTY_PAGES, ANY, "balance_dirty_pages balance_dirty_pages_ratelimited_flags" },
	{ REASON_JOURNAL, ANY,
	  "jbd2_log_wait_commit jbd2_complete_transaction wait_transaction_locked "
	  "add_transaction_credits xlog_wait_on_iclog xlog_wait_on_iclog_lsn xfs_log_force_seq" },
	{ REASON_DISK_WRITE, ANY,
	  "folio_wait_writeback wb_wait_for_completion sync_inodes_sb __filemap_fdatawait_range "
	  "blkdev_issue_flush" },
	{ REASON_DISK_QUEUE, ANY, "blk_mq_get_tag rq_qos_wait wbt_wait" },
	{ REASON_FUSE, ANY, "request_wait_answer fuse_request_wait_answer __fuse_simple_request" },
	{ REASON_FUSE_SERVER, ANY, "fuse_dev_do_read" },
	{ REASON_NFS, ANY,
	  "rpc_wait_bit_killable nfs_wait_bit_killable nfs_wait_client_init_complete "
	  "nlmclnt_lock nlmclnt_block" },
	{ REASON_SMB, ANY, "wait_for_response" },
	{ REASON_P9, ANY, "p9_client_rpc" },
	{ REASON_DISK_READ, ANY, "filemap_update_page filemap_get_pages filemap_read" },
	{ REASON_DISK, VAGUE,
	  "io_schedule io_schedule_timeout bit_wait_io folio_wait_bit_common __wait_on_buffer "
	  "submit_bio_wait blk_io_schedule blk_wait_io __iomap_dio_rw xfs_buf_iowait" },
	{ REASON_KERNEL_MUTEX, ANY,
	  "mutex_lock __mutex_lock __mutex_lock_slowpath mutex_lock_interruptible "
	  "mutex_lock_killable __mutex_lock_killable_slowpath "
	  "__mutex_lock_interruptible_slowpath ww_mutex_lock __ww_mutex_lock" },
	{ REASON_KERNEL_RWSEM, ANY,
	  "rwsem_down_read_slowpath rwsem_down_write_slowpath down_read down_read_killable "
	  "down_read_interruptible down_write down_write_killable" },
	{ REASON_KERNEL_SEM, ANY,
	  "__down __down_common __down_interruptible __down_killable __down_timeout" },
	{ REASON_KERNEL_RT_MUTEX, ANY, "rt_mutex_slowlock __rt_mutex_slowlock" },
	{ REASON_KERNEL_PERCPU_RWSEM, ANY,
	  "percpu_rwsem_wait percpu_down_write __percpu_down_read" },
	{ REASON_RCU, ANY,
	  "synchronize_rcu synchronize_rcu_normal synchronize_rcu_expedited __wait_rcu_gp "
	  "__synchronize_srcu rcu_barrier" },
	{ REASON_TTY_READ, ANY, "n_tty_read" },
	{ REASON_TTY_WRITE, ANY, "n_tty_write tty_wait_until_sent" },
	{ REASON_MSGRCV, ANY, "do_msgrcv" },
	{ REASON_MSGSND, ANY, "do_msgsnd" },
	{ REASON_SYSV_SEM, ANY, "do_semtimedop __do_semtimedop" },
	{ REASON_MQ, ANY, "wq_sleep do_mq_timedreceive do_mq_timedsend" },
	{ REASON_GPU, ANY, "dma_fence_default_wait drm_syncobj_array_wait_timeout" },
	{ REASON_KVM, ANY, "kvm_vcpu_block kvm_vcpu_halt" },
	{ REASON_WORK, LEAF,
	  "worker_thread rescuer_thread kthread_worker_fn smpboot_thread_fn kthreadd "
	  "io_wq_worker io_sq_thread vhost_task_fn vhost_worker kswapd kcompactd kjournald2 "
	  "rcu_gp_kthread rcu_gp_fqs_loop khugepaged oom_reaper kauditd_thread irq_thread "
	  "scsi_error_handler ksmd kthread" },
};

/*
 * Functions of libc and of language runtimes that wait on a futex.
 */
static const struct row user_rows[] = {
	{ REASON_JOIN, ANY,
	  "pthread_join __pthread_clockjoin_ex pthread_timedjoin_np pthread_clockjoin_np" },
	{ REASON_COND, ANY,
	  "pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait __pthread_cond_wait "
	  "___pthread_cond_wait __pthread_cond_timedwait ___pthread_cond_timedwait64 cnd_wait "
	  "cnd_timedwait" },
	{ REASON_MUTEX, ANY,
	  "pthread_mutex_lock __pthread_mutex_lock ___pthread_mutex_lock __lll_lock_wait "
	  "__GI___lll_lock_wait pthread_mutex_timedlock pthread_mutex_clocklock mtx_lock" },
	{ REASON_RWLOCK, ANY,
	  "pthread_rwlock_rdlock pthread_rwlock_wrlock __pthread_rwlock_rdlock "
	  "__pthread_rwlock_wrlock ___pthread_rwlock_rdlock ___pthread_rwlock_wrlock" },
	{ REASON_SEM, ANY,
	  "sem_wait sem_timedwait sem_clockwait __new_sem_wait __new_sem_wait_slow64 "
	  "PyThread_acquire_lock_timed" },
	{ REASON_BARRIER, ANY, "pthread_barrier_wait __pthread_barrier_wait" },
};

/* A function of one of these tables; the name is `len` bytes of a string with several names. */
struct function {
	const char *name;
	size_t len;
	const struct row *row;
};

enum { FUNCTIONS_MAX = 320 };

_Static_assert(WAIT_REASON_N < UCHAR_MAX, "stack.reason has room for all reasons");

/* The functions of a table, sorted by name. */
struct index {
	struct function v[FUNCTIONS_MAX];
	size_t n;
};

static struct index kernel_index, user_index;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int function_compare(const void *x, const void *y)
{
	const struct function *a = x, *b = y;
	size_t n = a->len < b->len ? a->len : b->len;
	int r = memcmp(a->name, b->name, n);

	return r ? r : (a->len > b->len) - (a->len < b->len);
}

static void index_add(struct index *index, const struct row *row)
{
	const char *name = row->functions;
	size_t len;

	for (;; name += len + 1) {
		len = strcspn(name, " ");
		if (index->n == ARRAY_SIZE(index->v))
			abort();
		index->v[index->n++] = (struct function){ name, len, row };
		if (!name[len])
			return;
	}
}

static void indexes_make(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kernel_rows); i++)
		index_add(&kernel_index, &kernel_rows[i]);
	for (i = 0; i < ARRAY_SIZE(user_rows); i++)
		index_add(&user_index, &user_rows[i]);
	qsort(kernel_index.v, kernel_index.n, sizeof(kernel_index.v[0]), function_compare);
	qsort(user_index.v, user_index.n, sizeof(user_index.v[0]), function_compare);
}

/*
 * Returns the row of a function; NULL if the function is in none. A suffix that the compiler
 * appends, such as ".isra.0", is ignored.
 */
static const struct row *row_find(const struct index *index, const char *name)
{
	const struct function wanted = { .name = name, .len = name ? strcspn(name, ".") : 0 };
	const struct function *found = NULL;

	if (name)
		found = bsearch(&wanted, index->v, index->n, sizeof(wanted), function_compare);
	return found ? found->row : NULL;
}

/* Returns how many frames of the stack are known, but at most REASON_FRAMES. */
static size_t frames_known(const struct stack *stack)
{
	size_t n;

	if (!stack->frames)
		return 0;
	n = stack->is_partial ? stack->n_raw : stack->is_resolved ? stack->n_frames : 0;
	return n < REASON_FRAMES ? n : REASON_FRAMES;
}

static bool starts_with(const char *name, const char *start)
{
	return strncmp(name, start, strlen(start)) == 0;
}

/* True for functions of the scheduler and for helpers that wait for whatever their caller wants. */
static bool is_helper(const char *name)
{
	static const char *const starts[] = { "__schedule", "schedule_", "preempt_schedule",
					      "wait_for_completion", "__wait_for_common" };
	size_t i;

	if (!name)
		return false;
	for (i = 0; i < ARRAY_SIZE(starts); i++)
		if (starts_with(name, starts[i]))
			return true;
	return strncmp(name, "schedule", strcspn(name, ".")) == 0 && strcspn(name, ".") == 8;
}

static enum wait_reason kernel_reason(const struct stack *stack, size_t n)
{
	enum wait_reason vague = REASON_UNKNOWN;
	size_t leaf = 0, i;

	while (leaf + 1 < n && is_helper(stack->frames[leaf]->name))
		leaf++;
	for (i = leaf; i < n && i < leaf + KERNEL_DEPTH; i++) {
		const struct row *row = row_find(&kernel_index, stack->frames[i]->name);

		if (!row || (row->rank == LEAF && i != leaf))
			continue;
		if (row->rank != VAGUE)
			return row->reason;
		if (vague == REASON_UNKNOWN)
			vague = row->reason;
	}
	return vague;
}

static enum wait_reason user_reason(const struct stack *stack, size_t n)
{
	size_t i;

	for (i = 0; i < n && i < USER_DEPTH; i++) {
		const struct row *row = row_find(&user_index, stack->frames[i]->name);

		if (row)
			return row->reason;
	}
	return REASON_UNKNOWN;
}

/*
 * Returns the reason that one stack shows. Keeps it in the stack, unless frames that would count
 * are not known yet.
 */
static enum wait_reason stack_reason(struct stack *stack,
				     enum wait_reason (*find)(const struct stack *stack, size_t n))
{
	enum wait_reason reason;
	unsigned int kept;
	size_t n;

	if (!stack || stack->flags & STACK_IS_AMBIGUOUS)
		return REASON_UNKNOWN;
	kept = atomic_load_explicit(&stack->reason, memory_order_relaxed);
	if (kept)
		return kept - 1;
	n = frames_known(stack);
	reason = find(stack, n);
	if (n && (n == stack->n_frames || n == REASON_FRAMES))
		atomic_store_explicit(&stack->reason, (unsigned char)(reason + 1),
				      memory_order_relaxed);
	return reason;
}

enum wait_reason reason_find(uint32_t state, struct stack *kernel, struct stack *user)
{
	enum wait_reason reason, futex;

	pthread_once(&once, indexes_make);
	if (state & (STATE_PREEMPTED | STATE_NEW))
		return state & STATE_THROTTLED ? REASON_THROTTLED : REASON_CPU;
	if (*task_state_letter(state) == 'T')
		return REASON_STOPPED;
	if (*task_state_letter(state) == 't')
		return REASON_DEBUGGER;
	reason = stack_reason(kernel, kernel_reason);
	if (reason != REASON_FUTEX)
		return reason;
	futex = stack_reason(user, user_reason);
	return futex == REASON_UNKNOWN ? reason : futex;
}

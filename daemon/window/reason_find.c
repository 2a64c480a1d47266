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
#include "common/own_function.h"
#include "daemon/window/task_state.h"

/*
 * KERNEL_DEPTH: the maximum number of kernel frames to look at, from the leaf on. Frames further up
 * say what the thread does, but not why it waits. USER_DEPTH: the same for user frames, of which
 * those further up may be about another lock than the one that the thread waits for. PROGRAM_DEPTH:
 * the same for functions of program_rows, below which are those of libc.
 */
enum { KERNEL_DEPTH = 24, USER_DEPTH = 5, PROGRAM_DEPTH = 8 };

enum rank {
	ANY,   /* the function may be any frame; of several, the one nearest to the leaf counts */
	LEAF,  /* the function must be the leaf, not counting the frames of the scheduler */
	TAKES, /* as LEAF, but not counting the functions of locks either: the only lock it takes */
	VAGUE, /* the function counts only if no other function counts */
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
	{ REASON_ACCEPT, ANY,
	  "inet_csk_accept unix_accept vsock_accept sctp_accept smc_accept tipc_accept "
	  "tipc_wait_for_accept l2cap_sock_accept rfcomm_sock_accept sco_sock_accept "
	  "llc_ui_accept" },
	{ REASON_CONNECT, ANY,
	  "inet_wait_for_connect __inet_stream_connect sk_stream_wait_connect "
	  "unix_stream_connect vsock_connect sctp_wait_for_connect "
	  "tipc_wait_for_connect llc_ui_wait_for_conn" },
	{ REASON_TCP, ANY,
	  "tcp_recvmsg_locked tcp_recvmsg tcp_splice_read mptcp_recvmsg tls_rx_rec_wait "
	  "tls_sw_recvmsg" },
	{ REASON_UDP, ANY, "__skb_recv_udp udp_recvmsg udpv6_recvmsg" },
	{ REASON_UNIX, ANY,
	  "unix_stream_data_wait unix_stream_read_generic __unix_dgram_recvmsg "
	  "unix_dgram_recvmsg" },
	{ REASON_NETLINK, ANY, "netlink_recvmsg" },
	{ REASON_PACKET, ANY, "packet_recvmsg" },
	{ REASON_VSOCK, ANY, "vsock_connectible_wait_data vsock_connectible_recvmsg" },
	{ REASON_UNIX_SEND, ANY, "unix_dgram_sendmsg" },
	{ REASON_SOCKET_SEND, ANY,
	  "sk_stream_wait_memory sock_alloc_send_pskb sock_wait_for_wmem netlink_attachskb "
	  "tpacket_snd sctp_wait_for_sndbuf smc_tx_wait rds_sendmsg "
	  "isotp_sendmsg vsock_connectible_sendmsg" },
	{ REASON_SOCKET_LOCK, ANY, "__lock_sock" },
	{ REASON_LINGER, ANY,
	  "sk_stream_wait_close sctp_wait_for_close vsock_linger smc_close_stream_wait" },
	{ REASON_SOCKET, VAGUE,
	  "sk_wait_data __skb_wait_for_more_packets smc_rx_wait bt_sock_stream_recvmsg "
	  "tipc_wait_for_rcvmsg rds_recvmsg llc_wait_data af_alg_wait_for_data" },
	{ REASON_TUN, ANY, "tun_do_read tun_ring_recv tap_do_read" },
	{ REASON_EPOLL, ANY, "ep_poll do_epoll_wait do_epoll_pwait" },
	{ REASON_POLL, ANY, "do_poll do_sys_poll" },
	{ REASON_SELECT, ANY, "do_select core_sys_select" },
	{ REASON_IO_URING, ANY,
	  "io_cqring_wait io_cqring_schedule io_uring_cancel_generic io_ring_exit_work "
	  "io_wq_put_and_exit io_sqpoll_wait_sq io_rsrc_ref_quiesce" },
	{ REASON_AIO, ANY, "read_events do_io_getevents" },
	{ REASON_EVENTFD, ANY, "eventfd_read eventfd_write" },
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
	{ REASON_PID_NS, ANY, "zap_pid_ns_processes" },
	{ REASON_EXEC, ANY, "de_thread" },
	/* de_thread() is inlined there. */
	{ REASON_EXEC, LEAF, "begin_new_exec" },
	{ REASON_COREDUMP, ANY, "coredump_wait coredump_task_exit" },
	/* coredump_wait() is inlined there. */
	{ REASON_COREDUMP, LEAF, "vfs_coredump do_coredump" },
	{ REASON_DEBUGGER, ANY, "ptrace_stop" },
	{ REASON_SECCOMP, ANY, "seccomp_do_user_notification" },
	{ REASON_SECCOMP_SERVER, ANY, "recv_wait_event" },
	{ REASON_SCANNED, ANY, "fanotify_handle_event fanotify_get_response" },
	{ REASON_KEY, ANY,
	  "request_key request_key_tag request_key_and_link wait_for_key_construction" },
	{ REASON_MODULE, ANY, "__request_module idempotent_wait_for_completion" },
	{ REASON_FIRMWARE, ANY, "_request_firmware firmware_fallback_sysfs" },
	{ REASON_USER_HELPER, VAGUE, "call_usermodehelper_exec" },
	{ REASON_AUTOFS, ANY, "autofs_wait autofs_expire_wait" },
	{ REASON_AUDIT, ANY, "audit_log_start" },
	{ REASON_KERNEL_LOG, ANY, "devkmsg_read do_syslog syslog_print" },
	{ REASON_TRACE, ANY, "tracing_wait_pipe tracing_read_pipe ring_buffer_wait" },
	{ REASON_NETDEV, ANY, "netdev_wait_allrefs netdev_wait_allrefs_any netdev_run_todo" },
	{ REASON_NETNS, TAKES, "copy_net_ns cleanup_net" },
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
	{ REASON_USERFAULTFD_SERVER, ANY,
	  "userfaultfd_ctx_read userfaultfd_read userfaultfd_read_iter" },
	{ REASON_MIGRATION, ANY,
	  "migration_entry_wait migration_entry_wait_on_locked pmd_migration_entry_wait" },
	{ REASON_HOST_PAGE, ANY, "kvm_async_pf_task_wait_schedule" },
	{ REASON_PAGE_FAULT, ANY, "filemap_fault" },
	{ REASON_RECLAIM, ANY, "reclaim_throttle throttle_direct_reclaim" },
	{ REASON_MEMORY_MAX, ANY, "mem_cgroup_oom_synchronize" },
	{ REASON_MEMORY_HIGH, ANY, "mem_cgroup_handle_over_high __mem_cgroup_handle_over_high" },
	{ REASON_DIRTY_PAGES, ANY, "balance_dirty_pages balance_dirty_pages_ratelimited_flags" },
	{ REASON_JOURNAL, ANY,
	  "jbd2_log_wait_commit jbd2_complete_transaction wait_transaction_locked "
	  "add_transaction_credits start_this_handle do_get_write_access "
	  "jbd2_journal_lock_updates xlog_wait_on_iclog xlog_wait_on_iclog_lsn "
	  "xfs_log_force_seq xlog_cil_force_seq xlog_grant_head_wait xlog_grant_head_check "
	  "xlog_state_get_iclog_space btrfs_commit_transaction btrfs_wait_for_commit "
	  "wait_current_trans btrfs_sync_log" },
	{ REASON_QUOTA, ANY, "dqget dquot_acquire dquot_commit" },
	{ REASON_WRITEBACK, ANY,
	  "folio_wait_writeback wb_wait_for_completion sync_inodes_sb __filemap_fdatawait_range "
	  "inode_wait_for_writeback __inode_wait_for_writeback inode_sleep_on_writeback "
	  "btrfs_start_ordered_extent" },
	{ REASON_DISK_FLUSH, ANY, "blkdev_issue_flush" },
	{ REASON_DISK_QUEUE, ANY,
	  "blk_mq_get_tag rq_qos_wait wbt_wait ioc_rqos_throttle blkcg_maybe_throttle_current "
	  "blk_queue_enter __bio_queue_enter" },
	{ REASON_DISK_RECOVERY, ANY, "scsi_block_when_processing_errors" },
	{ REASON_MD, ANY,
	  "md_handle_request md_write_start md_super_wait md_flush_request wait_barrier "
	  "raid5_get_active_stripe" },
	{ REASON_FUSE, ANY,
	  "request_wait_answer fuse_request_wait_answer __fuse_simple_request fuse_get_req" },
	{ REASON_FUSE_SERVER, ANY, "fuse_dev_do_read" },
	{ REASON_NFS, ANY,
	  "rpc_wait_bit_killable __rpc_execute nfs_wait_bit_killable nfs_wait_on_request "
	  "nfs_wait_client_init_complete nfs_iocounter_wait nfs4_wait_clnt_recover "
	  "nlmclnt_lock nlmclnt_block" },
	{ REASON_SMB, ANY,
	  "wait_for_response wait_for_free_credits compound_send_recv "
	  "cifs_wait_for_server_reconnect" },
	{ REASON_P9, ANY, "p9_client_rpc" },
	{ REASON_CEPH, ANY, "ceph_mdsc_wait_request ceph_mdsc_do_request ceph_osdc_wait_request" },
	{ REASON_NETFS, ANY,
	  "netfs_wait_for_read netfs_wait_for_write netfs_wait_for_in_progress_stream" },
	/* Which file system it is, and so whether there is a disk, these do not show. */
	{ REASON_FILE_READ, ANY,
	  "filemap_update_page filemap_get_pages filemap_read filemap_read_folio "
	  "do_read_cache_folio" },
	{ REASON_DISK, VAGUE,
	  "__wait_on_buffer submit_bio_wait blk_io_schedule blk_wait_io blk_execute_rq "
	  "blkdev_read_iter __blkdev_direct_IO_simple __iomap_dio_rw xfs_buf_iowait "
	  "read_extent_buffer_pages" },
	{ REASON_IO, VAGUE, "io_schedule io_schedule_timeout bit_wait_io folio_wait_bit_common" },
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
	{ REASON_MMAP_LOCK, TAKES,
	  "vm_mmap_pgoff __vm_munmap do_mprotect_pkey __do_sys_brk __x64_sys_brk do_madvise "
	  "madvise_lock lock_mm_and_find_vma get_mmap_lock_carefully __access_remote_vm "
	  "proc_map_files_lookup exit_mm exit_mmap dup_mmap do_mlock __mm_populate" },
	{ REASON_INODE_LOCK, TAKES,
	  "lock_two_directories lock_rename filename_create do_unlinkat do_rmdir path_openat "
	  "lookup_slow iterate_dir chmod_common chown_common vfs_utimes do_truncate "
	  "generic_file_write_iter ext4_buffered_write_iter ext4_file_write_iter xfs_ilock "
	  "xfs_ilock_iocb btrfs_inode_lock fuse_cache_write_iter fuse_file_write_iter "
	  "fuse_direct_write_iter fuse_dio_lock fuse_fsync fuse_lock_inode vfs_unlink "
	  "vfs_rename vfs_rmdir vfs_link vfs_setxattr vfs_removexattr ext4_fallocate "
	  "fuse_file_fallocate nfs_start_io_read nfs_start_io_write" },
	{ REASON_FILE_POSITION, TAKES, "fdget_pos __fdget_pos" },
	{ REASON_LOOKUP, ANY, "d_alloc_parallel d_wait_lookup" },
	/* sb_start_write() is inlined in them. */
	{ REASON_FILESYSTEM_FREEZE, TAKES,
	  "mnt_want_write mnt_want_write_file vfs_write vfs_writev vfs_iter_write vfs_fallocate" },
	{ REASON_RTNL, TAKES,
	  "rtnl_lock rtnl_lock_killable rtnetlink_rcv_msg rtnl_newlink rtnl_setlink rtnl_dellink "
	  "rtnl_dumpit linkwatch_event devinet_ioctl" },
	{ REASON_CGROUP_LOCK, TAKES,
	  "cgroup_kn_lock_live cgroup_procs_write_start proc_cgroup_show" },
	{ REASON_RCU, ANY,
	  "synchronize_rcu synchronize_rcu_normal synchronize_rcu_expedited __wait_rcu_gp "
	  "__synchronize_srcu rcu_barrier" },
	{ REASON_WORKQUEUE, ANY,
	  "__flush_work flush_work __cancel_work_sync __flush_workqueue drain_workqueue" },
	{ REASON_KTHREAD, ANY, "kthread_stop __kthread_create_on_node" },
	{ REASON_TTY_READ, ANY, "n_tty_read" },
	{ REASON_TTY_WRITE, ANY, "n_tty_write tty_wait_until_sent" },
	{ REASON_TTY_OPEN, ANY, "tty_port_block_til_ready" },
	{ REASON_MSGRCV, ANY, "do_msgrcv" },
	{ REASON_MSGSND, ANY, "do_msgsnd" },
	{ REASON_SYSV_SEM, ANY, "do_semtimedop __do_semtimedop" },
	{ REASON_MQ, ANY, "wq_sleep do_mq_timedreceive do_mq_timedsend" },
	{ REASON_GPU, ANY,
	  "dma_fence_default_wait dma_fence_wait_timeout dma_resv_wait_timeout "
	  "drm_syncobj_array_wait_timeout drm_wait_vblank_ioctl drm_read "
	  "drm_atomic_helper_wait_for_flip_done" },
	{ REASON_INPUT, ANY, "evdev_read mousedev_read hidraw_read" },
	{ REASON_SOUND, ANY,
	  "wait_for_avail __snd_pcm_lib_xfer snd_pcm_drain snd_seq_read snd_rawmidi_read" },
	{ REASON_USB, ANY, "usb_start_wait_urb reap_as" },
	{ REASON_RANDOM, ANY, "wait_for_random_bytes rng_dev_read" },
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
	  "__GI___lll_lock_wait pthread_mutex_timedlock pthread_mutex_clocklock mtx_lock "
	  "mtx_timedlock __pthread_mutex_timedlock __pthread_mutex_clocklock_common "
	  "__pthread_mutex_lock_full" },
	{ REASON_RWLOCK, ANY,
	  "pthread_rwlock_rdlock pthread_rwlock_wrlock __pthread_rwlock_rdlock "
	  "__pthread_rwlock_wrlock ___pthread_rwlock_rdlock ___pthread_rwlock_wrlock "
	  "pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock pthread_rwlock_clockrdlock "
	  "pthread_rwlock_clockwrlock" },
	{ REASON_SEM, ANY,
	  "sem_wait sem_timedwait sem_clockwait __new_sem_wait __new_sem_wait_slow64 "
	  "PyThread_acquire_lock_timed" },
	{ REASON_BARRIER, ANY, "pthread_barrier_wait __pthread_barrier_wait" },
};

/*
 * Functions of programs and of languages in which a thread waits for something that the program
 * itself has made, and functions of clients in which a thread waits for an answer. They wait on a
 * futex, or in epoll_wait() and the like, as only idle threads do otherwise, or they sleep for a
 * while and look again. Of a method, e.g. of C++ or Rust, the last part of its name may stand for
 * it.
 */
static const struct row program_rows[] = {
	/* PostgreSQL: locks of tables, rows and transactions, of its shared memory, of a buffer */
	{ REASON_PROGRAM_LOCK, ANY,
	  "ProcSleep LWLockAcquire LWLockAcquireOrWait LWLockWaitForVar LockBufferForCleanup" },
	{ REASON_REPLICATION, ANY, "SyncRepWaitForLSN" },
	/* MySQL and MariaDB: locks of tables and of metadata, rows of InnoDB, replication */
	{ REASON_PROGRAM_LOCK, ANY,
	  "MDL_context::acquire_lock lock_wait lock_wait_suspend_thread thr_lock" },
	{ REASON_REPLICATION, ANY, "ReplSemiSyncMaster::commitTrx ReplSemiSyncMaster::commit_trx" },
	{ REASON_GIL, ANY, "take_gil PyEval_RestoreThread PyEval_AcquireThread" },
	/* Java: monitors ("synchronized"); wait() of a monitor is in other functions */
	{ REASON_PROGRAM_LOCK, ANY, "ObjectMonitor::EnterI ObjectMonitor::ReenterI" },
	/* Ruby's Mutex: the block that rb_mutex_synchronize() calls is further from its waits */
	{ REASON_PROGRAM_LOCK, ANY, "rb_mutex_lock rb_mutex_synchronize" },
	/* SQLite sleeps between its tries to lock the file */
	{ REASON_PROGRAM_LOCK, ANY,
	  "sqliteDefaultBusyCallback sqlite3InvokeBusyHandler btreeInvokeBusyHandler" },
	/*
	 * Clients of PostgreSQL. In those of MySQL and MariaDB only functions in which a replica
	 * also waits for the next event are near enough to the wait.
	 */
	{ REASON_REQUEST, ANY,
	  "PQgetResult PQexec PQexecParams PQexecPrepared PQconnectdb PQconnectdbParams "
	  "PQsetdbLogin" },
	/* names of hosts (DNS), libcurl; sockets with a timeout of CPython and PHP; reads of Ruby
	 */
	{ REASON_REQUEST, ANY,
	  "getaddrinfo gethostbyname gethostbyname_r gethostbyname2_r getnameinfo res_nsend "
	  "__res_nsend curl_easy_perform "
	  "sock_recv sock_recv_into sock_recvfrom sock_connect sock_connect_ex internal_connect "
	  "PySSL_select php_network_connect_socket php_sock_stream_wait_for_data "
	  "rb_thread_io_blocking_region" },
	/* D-Bus, Varlink and X11 */
	{ REASON_REQUEST, ANY,
	  "sd_bus_call sd_varlink_call g_dbus_connection_send_message_with_reply_sync "
	  "g_dbus_proxy_call_sync dbus_pending_call_block dbus_connection_send_with_reply_and_block "
	  "xcb_wait_for_reply" },
	/* Rust's std::sync and parking_lot; Abseil; locks of WebKit and Chromium */
	{ REASON_PROGRAM_LOCK, ANY,
	  "lock_contended read_contended write_contended lock_slow lock_shared_slow "
	  "lock_exclusive_slow LockSlow LockSlowLoop lockSlow" },
};

/* A function of one of these tables; the name is `len` bytes of a string with several names. */
struct function {
	const char *name;
	size_t len;
	const struct row *row;
};

enum { FUNCTIONS_MAX = 512 };

_Static_assert(WAIT_REASON_N < UCHAR_MAX, "stack.reason has room for all reasons");

/* The functions of a table, sorted by name. */
struct index {
	struct function v[FUNCTIONS_MAX];
	size_t n;
};

static struct index kernel_index, user_index, program_index;
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

static void index_make(struct index *index, const struct row *rows, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		index_add(index, &rows[i]);
	qsort(index->v, index->n, sizeof(index->v[0]), function_compare);
}

static void indexes_make(void)
{
	index_make(&kernel_index, kernel_rows, ARRAY_SIZE(kernel_rows));
	index_make(&user_index, user_rows, ARRAY_SIZE(user_rows));
	index_make(&program_index, program_rows, ARRAY_SIZE(program_rows));
}

/*
 * Returns the row of a function; NULL if the function is in none. A suffix that the compiler
 * appends, such as ".isra.0", is ignored, and so are the arguments of a C++ function.
 */
static const struct row *row_find(const struct index *index, const char *name)
{
	const struct function wanted = { .name = name, .len = name ? function_name_len(name) : 0 };
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
	return function_is(name, "schedule");
}

static size_t leaf_find(const struct stack *stack, size_t n)
{
	size_t leaf = 0;

	while (leaf + 1 < n && is_helper(stack->frames[leaf]->name))
		leaf++;
	return leaf;
}

static const struct row *kernel_row(const struct stack *stack, size_t i)
{
	return row_find(&kernel_index, stack->frames[i]->name);
}

/* Returns the reason that the function shows which takes a lock and waits for it, if it does. */
static enum wait_reason taker_reason(const struct stack *stack, size_t n, size_t leaf)
{
	const struct row *row = NULL;

	for (; leaf < n; leaf++) {
		row = kernel_row(stack, leaf);
		if (!row || row->reason < REASON_KERNEL_MUTEX ||
		    row->reason > REASON_KERNEL_PERCPU_RWSEM)
			break;
	}
	return row && row->rank == TAKES ? row->reason : REASON_UNKNOWN;
}

static enum wait_reason kernel_reason(const struct stack *stack, size_t n)
{
	const size_t leaf = leaf_find(stack, n);
	enum wait_reason taken = taker_reason(stack, n, leaf), vague = REASON_UNKNOWN;
	size_t i;

	if (taken != REASON_UNKNOWN)
		return taken;
	for (i = leaf; i < n && i < leaf + KERNEL_DEPTH; i++) {
		const struct row *row = kernel_row(stack, i);

		if (!row || row->rank == TAKES || (row->rank == LEAF && i != leaf))
			continue;
		if (row->rank != VAGUE)
			return row->reason;
		if (vague == REASON_UNKNOWN || vague == REASON_IO)
			vague = row->reason;
	}
	return vague;
}

/* True if the kernel lets signals end each wait for this reason, so that its state is S. */
static bool is_interruptible(enum wait_reason reason)
{
	switch (reason) {
	case REASON_MUTEX ... REASON_TUN:
	case REASON_EPOLL ... REASON_SELECT:
	case REASON_AIO ... REASON_TIMERFD:
	case REASON_PAUSE ... REASON_CHILD:
		return true;
	default:
		return false;
	}
}

/*
 * Returns the reason of a wait in state D in or below a function that waits in state S for what it
 * is about: the function itself waits in state D for locks only, those below it for anything.
 */
static enum wait_reason lock_reason(const struct stack *stack)
{
	const size_t n = frames_known(stack), leaf = leaf_find(stack, n);
	const struct row *row = leaf < n ? kernel_row(stack, leaf) : NULL;

	return row && is_interruptible(row->reason) ? REASON_KERNEL_LOCK : REASON_UNKNOWN;
}

/* Returns the last part of the name of a method, such as "lock" of "Queue::lock(int)". */
static const char *last_part(const char *name)
{
	size_t i;

	for (i = function_name_len(name); i > 2; i--)
		if (name[i - 1] == ':' && name[i - 2] == ':')
			return name + i;
	return name;
}

static const struct row *program_row(const char *name)
{
	const struct row *row = row_find(&program_index, name);

	return row || !name ? row : row_find(&program_index, last_part(name));
}

/*
 * True if frame i is that of take_gil() of CPython, which has no name in most files: the
 * interpreter's loop calls no other function of its own file that waits for a condition.
 */
static bool is_take_gil(const struct stack *stack, size_t n, size_t i)
{
	struct frame *const *at = &stack->frames[i];
	const struct row *below;

	if (i == 0 || i + 1 >= n || !function_is_nameless(at[0]->name) ||
	    at[0]->file_id != at[1]->file_id || !at[1]->name ||
	    strcmp(at[1]->name, "_PyEval_EvalFrameDefault") != 0)
		return false;
	below = row_find(&user_index, at[-1]->name);
	return below && below->reason == REASON_COND;
}

static enum wait_reason user_reason(const struct stack *stack, size_t n)
{
	size_t i;

	for (i = 0; i < n && i < PROGRAM_DEPTH; i++) {
		const struct row *row = program_row(stack->frames[i]->name);

		if (row)
			return row->reason;
		if (is_take_gil(stack, n, i))
			return REASON_GIL;
	}
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

/* True if the reason is one that program_rows show. */
static bool is_of_program(enum wait_reason reason)
{
	return reason == REASON_PROGRAM_LOCK || reason == REASON_GIL ||
	       reason == REASON_REPLICATION || reason == REASON_REQUEST;
}

bool reason_is_of_program(const struct stack *user)
{
	pthread_once(&once, indexes_make);
	return is_of_program(user_reason(user, user->n_frames));
}

/* True if a thread that waits in this way may do so for what program_rows show. */
static bool is_for_wakeups(enum wait_reason reason)
{
	switch (reason) {
	case REASON_FUTEX:
	case REASON_EPOLL ... REASON_SELECT:
	case REASON_SYSV_SEM:
	case REASON_SLEEP:
		return true;
	default:
		return false;
	}
}

enum wait_reason reason_find(uint32_t state, struct stack *kernel, struct stack *user)
{
	enum wait_reason reason, by_user;

	pthread_once(&once, indexes_make);
	if (state & (STATE_PREEMPTED | STATE_NEW))
		return state & STATE_THROTTLED ? REASON_THROTTLED : REASON_CPU;
	if (*task_state_letter(state) == 'T')
		return REASON_STOPPED;
	if (*task_state_letter(state) == 't')
		return REASON_DEBUGGER;
	if (state & STATE_FROZEN)
		return REASON_FROZEN;
	reason = stack_reason(kernel, kernel_reason);
	if (*task_state_letter(state) == 'D' && is_interruptible(reason))
		return lock_reason(kernel);
	if (!is_for_wakeups(reason))
		return reason;
	by_user = stack_reason(user, user_reason);
	if (is_of_program(by_user) || (reason == REASON_FUTEX && by_user != REASON_UNKNOWN))
		return by_user;
	return reason;
}

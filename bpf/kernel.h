/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_KERNEL_H
#define STACKD_BPF_KERNEL_H

/*
 * The kernel types that the BPF programs read, with only the members they read. libbpf adjusts each
 * access to the layout of the running kernel (CO-RE), so the order of members here is of no
 * importance.
 */

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rq {
	__u64 clock;
	__u64 clock_pelt;
	unsigned long lost_idle_time;
};

/* The run queue of a cgroup on one CPU. The last two members exist since Linux 6.6. */
struct cfs_rq {
	struct rq *rq;
	/* not 0 while this cgroup, or one above it, has used up its CPU quota */
	int throttle_count;
	__u64 throttled_clock_pelt;
	__u64 throttled_clock_pelt_time;
	__u64 throttled_clock_self;
	__u64 throttled_clock_self_time;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
	unsigned char sched_delayed; /* not 0: asleep, but still on its run queue (since 6.12) */
	__u64 exec_start; /* value of rq_clock_task() when sum_exec_runtime was last updated */
	__u64 sum_exec_runtime;
};

struct sched_info {
	unsigned long long run_delay;	 /* total time that the task was runnable without a CPU */
	unsigned long long last_arrival; /* time at which the task last got a CPU, by rq_clock() */
	unsigned long long
		last_queued; /* since when it is on the run queue of its CPU; 0: it is not */
};

typedef struct {
	int counter;
} atomic_t;

struct list_head {
	struct list_head *next;
};

typedef struct {
	unsigned long sig[1];
} sigset_t___kernel;

struct sigpending {
	sigset_t___kernel signal;
};

struct signal_struct {
	struct sigpending shared_pending;
	atomic_t live;		      /* number of its threads that have not exited */
	int nr_threads;		      /* number of its threads that have not been released */
	struct list_head thread_head; /* the threads that have not been released */
	/* CPU time of the threads that have been released */
	unsigned long long sum_sched_runtime;
};

struct kernfs_node {
	__u64 id;
	const char *name;
	struct kernfs_node *parent; /* before 6.15 */
};

struct kernfs_node___6_15 {
	struct kernfs_node *__parent; /* the name of `parent` since 6.15 (633488947ef6) */
};

struct cgroup {
	int level; /* depth in the hierarchy; 0: the root */
	struct kernfs_node *kn;
	struct cgroup *ancestors[]; /* since Linux 6.1 */
};

struct css_set {
	struct cgroup *dfl_cgrp; /* the task's cgroup in the unified hierarchy (cgroup v2) */
};

struct block_device;

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
	struct block_device *s_bdev;
};

struct inode {
	unsigned short i_mode;
	__u32 i_rdev;
	unsigned long i_ino;
	struct super_block *i_sb;
	long long i_size;
	__u32 i_generation;
	long long i_mtime_sec; /* since Linux 6.11 */
	__u32 i_mtime_nsec;
};

struct timespec64 {
	long long tv_sec;
	long tv_nsec;
};

struct inode___6_1 {
	struct timespec64 i_mtime;
};

struct inode___6_7 {
	struct timespec64 __i_mtime;
};

struct qstr {
	__u64 hash_len; /* hash and length of the name; the hash depends on the directory, too */
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
	struct dentry *d_parent;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mnt_namespace;

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct mnt_namespace *mnt_ns; /* an error value for mounts that no process can see */
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
};

struct vm_operations_struct;
struct mm_struct;

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_flags;
	const struct vm_operations_struct *vm_ops;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct maple_metadata {
	unsigned char end;
};

/*
 * A leaf of a maple tree, or an inner node without gaps: slot i is for the indexes that are above
 * pivot i - 1 and not above pivot i.
 */
struct maple_range_64 {
	unsigned long pivot[15];
	void *slot[16];
	struct maple_metadata meta;
};

/*
 * An inner node of a maple tree that also keeps the widest gap below it. The trees of processes'
 * mappings have such nodes.
 */
struct maple_arange_64 {
	unsigned long pivot[9];
	void *slot[10];
	struct maple_metadata meta;
};

struct maple_tree {
	void *ma_root;
};

typedef struct {
	long counter;
} atomic_long_t;

typedef struct {
	__s64 counter;
} atomic64_t;

typedef struct {
	atomic64_t tlb_gen; /* incremented by each TLB flush of the process (f39681ed0f48, 4.14) */
	void *vdso;
} mm_context_t;

struct rw_semaphore {
	atomic_long_t count; /* does not exist with PREEMPT_RT */
};

struct mm_struct {
	struct rw_semaphore mmap_lock; /* since Linux 5.8 */
	struct maple_tree mm_mt;       /* since Linux 6.1 */
	unsigned long start_code;      /* 0 while an exec is still setting up the memory */
	struct file *exe_file;
	unsigned long arg_start; /* address of the arguments of the program, each ends with a NUL */
	unsigned long arg_end;
	mm_context_t context;
};

/* A program that an exec is about to start. */
struct linux_binprm {
	const char *filename; /* its path, as the caller of exec gave it */
};

/* mm_lock_seq is incremented around each change of the process's mappings (5e31275cc997, 6.4). */
struct mm_struct___6_4 {
	int mm_lock_seq;
};

struct seqcount___kernel {
	unsigned int sequence;
};

typedef struct seqcount___kernel seqcount_t___kernel;

struct mm_struct___6_14 {
	seqcount_t___kernel mm_lock_seq;
};

struct llist_head {
	struct llist_node *first;
};

struct task_struct {
	unsigned int __state; /* since Linux 5.14 */
	void *stack;
	unsigned int flags;
	int on_cpu;
	int on_rq;
	struct sched_entity se;
	/* true: the task is off its run queue until its cgroup has CPU quota again (since 6.18) */
	bool throttled;
	struct sched_info sched_info;
	int exit_state;
	unsigned int in_execve : 1; /* true until the exec of the task has ended */
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct list_head thread_node; /* entry in the list signal->thread_head */
	unsigned long nvcsw;
	unsigned long nivcsw;
	__u64 start_boottime;
	char comm[16];
	struct sigpending pending;
	sigset_t___kernel blocked;
	struct css_set *cgroups;
	struct signal_struct *signal;
	struct mm_struct *mm;
	__u64 self_exec_id; /* incremented by each exec; 64 bits since 5.7 */
	void *ret_stack;    /* return addresses on the stack that function_graph has replaced */
	/*
	 * The original return addresses of functions whose return addresses on the stack were
	 * replaced by fprobes or, since Linux 5.18, by kretprobes.
	 */
	struct llist_head rethooks;
	/*
	 * Before Linux 5.18: the original return addresses of functions whose return addresses on
	 * the stack were replaced by kretprobes.
	 */
	struct llist_head kretprobe_instances;
};

#define STACK_MASK 0x3fffULL /* a kernel stack begins at a multiple of its size, 16 KiB */

/*
 * The registers of user space, the kernel's struct pt_regs. The name differs, as the system's
 * headers define a struct pt_regs, too.
 */
struct pt_regs___kernel {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};

struct bpf_iter_meta {
	__u64 session_id;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/* from include/linux/mm.h */
#define VM_EXEC 0x00000004

/* from include/linux/sched.h */
#define TASK_INTERRUPTIBLE   0x01
#define TASK_UNINTERRUPTIBLE 0x02
#define TASK_DEAD	     0x80
#define PF_EXITING	     0x00000004
#define PF_KTHREAD	     0x00200000

/*
 * From kernel/locking/rwsem.c: the bits of the count that are set while a writer holds the lock or
 * tasks wait for it.
 */
#define RWSEM_BUSY 0x7

#endif

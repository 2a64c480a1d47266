/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_IO_KERNEL_H
#define STACKD_BPF_IO_KERNEL_H

/*
 * The kernel types of files, block requests and disks that iolat reads, with only the members it
 * reads. kernel.h has the types of tasks.
 */

#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct block_device_operations {
	void *submit_bio; /* not NULL: the driver takes bios directly and has no request queue */
};

struct gendisk {
	int major;
	int first_minor;
	const struct block_device_operations *fops;
};

struct block_device {
	struct gendisk *bd_disk;
};

struct request_queue {
	struct gendisk *disk; /* since Linux 5.15 */
};

struct bvec_iter {
	unsigned int bi_size;
};

struct cgroup_root {
	int hierarchy_id; /* 0: the unified hierarchy (cgroup v2) */
};

struct cgroup___io {
	struct cgroup_root *root;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct bio {
	struct blkcg_gq *bi_blkg; /* exists only with CONFIG_BLK_CGROUP */
	struct bio *bi_next;	  /* the next bio of the same request */
	struct block_device *bi_bdev;
	void *bi_private; /* the bio that this bio was split from, if any */
	unsigned int bi_opf;
	unsigned char bi_status; /* 0: success; one byte since 4.13 (4e4cbee93d56) */
	struct bvec_iter bi_iter;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
	struct bio *bio;
	__u64 start_time_ns; /* when the request was made; 0 if the kernel keeps no statistics */
};

struct kiocb {
	struct file *ki_filp;
	void *ki_complete; /* NULL: the caller waits for the end */
	int ki_flags;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct thread_info {
	unsigned int status;
};

/* Members of a task that only iolat reads; the type in kernel.h has the others. */
struct task_struct___io {
	struct thread_info thread_info;
	void *stack;
	struct files_struct *files;
};

#pragma clang attribute pop

/* From include/linux/blk_types.h. The numbers are the same in all supported kernels. */
#define REQ_OP_MASK	    0xff
#define REQ_OP_READ	    0
#define REQ_OP_WRITE	    1
#define REQ_OP_FLUSH	    2
#define REQ_OP_DISCARD	    3
#define REQ_OP_SECURE_ERASE 5
#define REQ_OP_WRITE_ZEROES 9

#define S_IFMT_MASK  0170000
#define S_IFCHR_BITS 0020000
#define S_IFBLK_BITS 0060000

#define EAGAIN	    11	/* include/uapi/asm-generic/errno-base.h */
#define EIOCBQUEUED 529 /* include/linux/errno.h: the I/O completes later */
#define TS_COMPAT   2	/* arch/x86/include/asm/thread_info.h: set in a 32-bit system call */

/* From include/linux/fs.h: a kiocb with one of these flags does not wait. */
#define IOCB_NOWAIT (1 << 3)  /* -EAGAIN is returned */
#define IOCB_WAITQ  (1 << 19) /* who made the request is called back when the page is there */

#endif

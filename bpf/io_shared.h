/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_IO_SHARED_H
#define STACKD_BPF_IO_SHARED_H

/*
 * What the programs of iolat and the daemon both see: keys and sums of operations by layer, and the
 * table of open ones. Times are ns of CLOCK_MONOTONIC. No padding; sizes are asserted.
 */

#include <linux/types.h>

#include "layout.h"

/* From the program down to the device. The last three are parts of a request's time. */
enum io_layer {
	IO_LAYER_SYSCALL,
	IO_LAYER_VFS,
	IO_LAYER_FS,
	IO_LAYER_BLOCK,	   /* a request, from its making to its completion */
	IO_LAYER_THROTTLE, /* a bio, held back for its cgroup's io.max */
	IO_LAYER_QUEUE,	   /* a request, up to the moment the driver got it */
	IO_LAYER_DEVICE,   /* and from there on */
	IO_LAYERS,
};

enum io_op {
	IO_OP_NONE,
	IO_OP_READ,
	IO_OP_WRITE,
	IO_OP_SYNC,
	IO_OP_OPEN,
	IO_OP_DISCARD,
	IO_OP_FLUSH,
	IO_OP_SUBMIT, /* io_uring_enter and its like: any number of operations, or none */
	IO_OP_OTHER,
	IO_OPS,
};

/* Which argument of a system call names the file; in the upper bits of a member of io_calls. */
enum io_call_file {
	IO_FILE_NONE = 0,
	IO_FILE_FIRST = 0x10,  /* the first argument is its descriptor */
	IO_FILE_RESULT = 0x20, /* the result is */
	IO_FILE_OUT = 0x30,    /* the third argument is (what splice() writes to) */
};

/* Which argument of a function names the file. */
enum io_argument {
	IO_ARGUMENT_FIRST,
	IO_ARGUMENT_SECOND,
	IO_ARGUMENT_IOCB, /* the first is a kiocb, which has it */
};

/* clang-format off */
/* The kernel's functions of system calls that are followed; the types of sync() have but this name. */
#define IO_CALL_FUNCTIONS(f)                                                        \
	f(__x64_sys_read) f(__x64_sys_pread64) f(__x64_sys_readv)                   \
	f(__x64_sys_preadv) f(__x64_sys_preadv2)                                    \
	f(__x64_sys_write) f(__x64_sys_pwrite64) f(__x64_sys_writev)                \
	f(__x64_sys_pwritev) f(__x64_sys_pwritev2)                                  \
	f(__x64_sys_sendfile64) f(__x64_sys_copy_file_range) f(__x64_sys_splice)    \
	f(__x64_sys_fsync) f(__x64_sys_fdatasync) f(__x64_sys_syncfs)               \
	f(__x64_sys_sync_file_range) f(__do_sys_sync)                               \
	f(__x64_sys_open) f(__x64_sys_openat) f(__x64_sys_openat2)                  \
	f(__x64_sys_io_uring_enter) f(__x64_sys_io_submit) f(__x64_sys_io_getevents)
/* clang-format on */

/* What a program that is attached to many functions learns of the one at hand. */
#define IO_COOKIE(layer, op, argument) ((__u64)(layer) | (__u64)(op) << 8 | (__u64)(argument) << 16)
#define IO_COOKIE_LAYER(cookie)	       ((cookie)&0xff)
#define IO_COOKIE_OP(cookie)	       ((cookie) >> 8 & 0xff)
#define IO_COOKIE_ARGUMENT(cookie)     ((cookie) >> 16 & 0xff)

enum {
	IO_CALLS = 512,	 /* numbers of system calls, from 0 */
	IO_BUCKETS = 64, /* bucket i: [2^i, 2^(i+1)) ns; the first one takes 0 too */
	IO_DEPTH = 8,	 /* operations within each other, of one thread */
	IO_SLOTS = 4096, /* threads within an operation at a time, at most; a power of two */
	IO_WAYS = 8,	 /* places in the table that a thread may have */
};

/* In the place of a file system's magic number. */
#define IO_MAGIC_CHARACTER 1U /* a character device */
#define IO_MAGIC_BLOCK	   2U /* a block device, opened as such */

enum io_key_flags {
	IO_KEY_IS_KERNEL = 1, /* of a thread of the kernel */
	IO_KEY_IS_SLOW = 2,   /* of the slow ones by stack: they are in the row of all as well */
	IO_KEY_IS_REST = 4,   /* of all processes that no row was left for */
};

enum io_slot_flags {
	/* IO_KEY_IS_KERNEL, and */
	IO_SLOT_IS_UNWANTED = 1U << 31, /* no session wants what is open */
};

struct io_key {
	__u64 leader_boot_ns;
	union {
		__u64 kstack;
		__u64 writer; /* of requests: the control group they are written back for; 0: none
			       */
	};
	__u64 ustack;
	__u32 tgid;
	__u32 exec_gen;
	__u32 dev; /* the kernel's: major << 20 | minor; 0: none */
	__u32 magic;
	__u16 call; /* a system call's number plus one; 0: none */
	__u8 layer;
	__u8 op;
	__u32 flags;
};

struct io_longest {
	__u64 ns;
	__u64 end_ns;
	__u32 tid;
	__u32 pad;
};

/* No disk has 2^32 requests of a kind in a window, of ten minutes at most. */
struct io_part {
	struct io_longest longest;
	__u32 buckets[IO_BUCKETS];
};

/* Any CPU writes them. Parts are of total_ns, but for own_ns of what is in layers below. */
struct io_sums {
	__u64 count;
	__u64 total_ns;
	__u64 own_ns;	   /* less the operations of layers below, made meanwhile */
	__u64 runnable_ns; /* ready, without a CPU */
	__u64 asleep_ns;
	__u64 device_ns;    /* asleep while the device worked for it, */
	__u64 queue_ns;	    /* while its requests were in the queue, */
	__u64 throttled_ns; /* and held back */
	__u64 async;	    /* begun only: it goes on after the return; no time is counted */
	__u64 errors;
	__u64 bytes;
	__u64 merges;
	__u64 requeues;
	char comm[COMM_LEN];
	struct io_longest longest;
	__u64 buckets[IO_BUCKETS];
	/* Of a row of IO_LAYER_BLOCK, which stands for those of these layers too, and has no more
	 * times but queue_ns and device_ns. */
	struct io_part queue;
	struct io_part device;
};

/* What one operation adds to its row. */
struct io_times {
	__u64 end_ns;
	__u64 total_ns;
	__u64 own_ns;
	__u64 runnable_ns;
	__u64 asleep_ns;
	__u64 device_ns;
	__u64 queue_ns;
	__u64 throttled_ns;
	__u64 bytes;
	__u32 tid;
	__u32 is_error;
};

/* One open operation of a thread. */
struct io_frame {
	__u64 start_ns;
	__u64 below_ns; /* of operations within it that have ended */
	__u64 file;	/* where it is not known any more at the end; else 0 */
	__u64 off_mark; /* grows by the time the thread is off the CPU */
	__u64 delay_ns; /* sched_info.run_delay as it began */
	__u16 call;
	__u8 layer;
	__u8 op;
	__u32 pad;
};

/*
 * A thread by its kernel stack: that needs no call to find out. Written by the thread itself; one
 * without open operations may be taken over by another thread.
 */
struct io_slot {
	__u64 stack; /* its base; 0: free */
	__u32 depth;
	__u32 generation; /* of the outermost operation: requests made for it say so */
	__u64 device_ns;  /* of requests made for it that have completed */
	__u64 queue_ns;
	__u64 throttled_ns;
	__u64 leader_boot_ns; /* who it is, as the next four */
	__u32 tgid;
	__u32 tid;
	__u32 exec_gen;
	__u32 flags; /* enum io_slot_flags */
	/* Of the one that ends: the programs' own stack is left to those who walk another. */
	struct io_key key;
	struct io_times times;
	struct io_frame frames[IO_DEPTH];
};

_Static_assert(sizeof(struct io_key) == 48, "io_key has no padding");
_Static_assert(sizeof(struct io_sums) == 192 + 16 * IO_BUCKETS, "io_sums has no padding");
_Static_assert(sizeof(struct io_times) == 80, "io_times has no padding");
_Static_assert(sizeof(struct io_frame) == 48, "io_frame has no padding");
_Static_assert(sizeof(struct io_slot) == 192 + 48 * IO_DEPTH, "io_slot has no padding");

#endif

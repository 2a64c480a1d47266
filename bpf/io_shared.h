/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_IO_SHARED_H
#define STACKD_BPF_IO_SHARED_H

/*
 * The structs that iolat's BPF programs and the daemon share: keys and sums of I/O operations by
 * layer, and the table of the operations that have not ended. Times are ns of CLOCK_MONOTONIC. No
 * padding; sizes are asserted.
 */

#include <linux/types.h>

#include "layout.h"

/*
 * The layers of I/O operations, from the program down to the device. IO_LAYER_QUEUE and
 * IO_LAYER_DEVICE are the two parts of a block request's time.
 */
enum io_layer {
	IO_LAYER_SYSCALL,
	IO_LAYER_VFS,
	IO_LAYER_FS,
	IO_LAYER_BLOCK,	   /* a block request, from its creation to its completion */
	IO_LAYER_THROTTLE, /* a bio that was held back for its cgroup's io.max */
	IO_LAYER_QUEUE,	   /* a block request, from its creation until the driver gets it */
	IO_LAYER_DEVICE,   /* a block request, from when the driver gets it to its completion */
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
	IO_OP_SUBMIT, /* io_uring_enter, io_submit: one call, any number of operations */
	IO_OP_OTHER,
	IO_OPS,
};

/*
 * Says where the descriptor of a system call's file is: in an argument of the call, or in its
 * result. io_calls[] combines it with an enum io_op.
 */
enum io_call_file {
	IO_FILE_NONE = 0,
	IO_FILE_FIRST = 0x10,  /* the first argument is the file's descriptor */
	IO_FILE_RESULT = 0x20, /* the call returns the file's descriptor */
	IO_FILE_OUT = 0x30, /* the third argument is the descriptor of the output file (splice) */
};

/* Says which argument of a kernel function leads to the file. */
enum io_argument {
	IO_ARGUMENT_FIRST,
	IO_ARGUMENT_SECOND,
	IO_ARGUMENT_IOCB, /* the first argument is a struct kiocb, which points to the file */
};

/* clang-format off */
/*
 * Calls f() for the kernel function of each followed system call. BTF has sync() only as
 * __do_sys_sync.
 */
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

/*
 * Makes the BPF cookie of a kernel function. A BPF program that is attached to many functions finds
 * out by the cookie which of them was called.
 */
#define IO_COOKIE(layer, op, argument) ((__u64)(layer) | (__u64)(op) << 8 | (__u64)(argument) << 16)
#define IO_COOKIE_LAYER(cookie)	       ((cookie)&0xff)
#define IO_COOKIE_OP(cookie)	       ((cookie) >> 8 & 0xff)
#define IO_COOKIE_ARGUMENT(cookie)     ((cookie) >> 16 & 0xff)

enum {
	IO_CALLS = 512,	 /* size of tables that are indexed by system call number */
	IO_BUCKETS = 64, /* number of buckets: bucket i has [2^i, 2^(i+1)) ns, the first also 0 */
	IO_DEPTH = 8,	 /* maximum number of nested operations of one thread */
	IO_SLOTS = 4096, /* maximum number of threads that are in an operation; a power of two */
	/*
	 * the address of a thread's kernel stack selects this number of adjacent slots, and the
	 * thread has one of them
	 */
	IO_WAYS = 8,
};

/* These numbers are used in place of a file system's magic number if the file is a device. */
#define IO_MAGIC_CHARACTER 1U /* a character device */
#define IO_MAGIC_BLOCK	   2U /* a block device, opened as such */

enum io_key_flags {
	IO_KEY_IS_KERNEL = 1, /* the row has operations of a kernel thread */
	/*
	 * The row counts only slow operations, and its key has their stacks. Each slow operation is
	 * also counted in a row that has neither this flag nor stacks.
	 */
	IO_KEY_IS_SLOW = 2,
	/*
	 * With IO_KEY_IS_SLOW: the row has operations that were not slow but were picked at random;
	 * all its sums are estimates.
	 */
	IO_KEY_IS_SAMPLED = 8,
	IO_KEY_IS_REST = 4, /* the row combines the processes that got no row of their own */
};

enum io_slot_flags {
	/* io_slot.flags also has IO_KEY_IS_KERNEL. */
	IO_SLOT_IS_UNWANTED = 1U << 31, /* the filter rejects the thread's present operations */
};

struct io_key {
	__u64 leader_boot_ns;
	union {
		__u64 kstack;
		__u64 writer; /* requests: id of the cgroup whose data they write back; 0: none */
	};
	__u64 ustack;
	__u32 tgid;
	__u32 exec_gen;
	__u32 dev; /* device number, as the kernel has it: major << 20 | minor; 0: none */
	__u32 magic;
	__u16 call; /* number of the system call plus one; 0: none */
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

/*
 * How long requests were in the queue, or in the device. Each bucket has 32 bits, which are enough:
 * a window lasts ten minutes at most, and no disk completes 2^32 requests in that time.
 */
struct io_part {
	struct io_longest longest;
	__u32 buckets[IO_BUCKETS];
};

/*
 * Sums over the operations of one row. Any CPU may add to them. runnable_ns and asleep_ns are parts
 * of total_ns.
 */
struct io_sums {
	__u64 count;
	__u64 total_ns;
	__u64 own_ns;	   /* total_ns without the time of nested operations of lower layers */
	__u64 runnable_ns; /* time for which the thread was runnable and waited for a CPU */
	__u64 asleep_ns;
	/* part of asleep_ns in which a device handled a request of the operation */
	__u64 device_ns;
	__u64 queue_ns;	    /* part of asleep_ns in which a request of the operation was queued */
	__u64 throttled_ns; /* part of asleep_ns in which io.max delayed a bio of the operation */
	/* number of operations that continued after the call; their time is unknown */
	__u64 async;
	__u64 errors;
	__u64 bytes;
	__u64 merges;
	__u64 requeues;
	char comm[COMM_LEN];
	struct io_longest longest;
	__u64 buckets[IO_BUCKETS];
	/*
	 * `queue` and `device` are used only in rows of IO_LAYER_BLOCK. Such rows have no other
	 * times than queue_ns and device_ns.
	 */
	struct io_part queue;
	struct io_part device;
};

/* The times of one operation, which are added to the sums of its row. */
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
	/*
	 * Not 0: sample.h picked the operation at random, with this limit, and it stands for
	 * `weight` operations.
	 */
	__u64 sample_below_ns;
	__u64 weight;
};

/* One operation of a thread that has begun and not ended. */
struct io_frame {
	__u64 start_ns;
	__u64 below_ns; /* total time of the ended operations that were nested in this one */
	/* address of the file, for return probes, which see no arguments; other programs: 0 */
	__u64 file;
	__u64 off_mark; /* value of task_off_mark() when the operation began */
	__u64 delay_ns; /* value of sched_info.run_delay when the operation began */
	__u16 call;
	__u8 layer;
	__u8 op;
	__u32 iocb_flags; /* value of iocb_flags() when the operation began; without iocb: 0 */
};

/*
 * A slot has the operations of one thread that have not ended. A BPF program finds the slot by the
 * thread's kernel stack, whose address it knows without a call. Only the thread itself writes its
 * slot, except for device_ns, queue_ns and throttled_ns: BPF programs at the end of a request add
 * to these on any CPU. Another thread may take over a slot without operations.
 */
struct io_slot {
	__u64 stack; /* lowest address of the thread's kernel stack; 0: free slot */
	__u32 depth; /* number of operations that have not ended */
	/*
	 * serial number of the thread's outermost operation; stored in the requests that it makes,
	 * too
	 */
	__u32 generation;
	__u64 device_ns; /* time for which completed requests of the operation were in the device */
	__u64 queue_ns;	 /* time for which completed requests of the operation were queued */
	/* time for which io.max held back completed requests or bios of the operation */
	__u64 throttled_ns;
	__u64 leader_boot_ns; /* this and the next three members identify the thread */
	__u32 tgid;
	__u32 tid;
	__u32 exec_gen;
	__u32 flags; /* enum io_slot_flags */
	/*
	 * Buffers for the program at the end of an operation: the BPF stack has too little room for
	 * them.
	 */
	struct io_key key;
	struct io_times times;
	struct io_frame frames[IO_DEPTH];
};

_Static_assert(sizeof(struct io_key) == 48, "io_key has no padding");
_Static_assert(sizeof(struct io_sums) == 192 + 16 * IO_BUCKETS, "io_sums has no padding");
_Static_assert(sizeof(struct io_times) == 96, "io_times has no padding");
_Static_assert(sizeof(struct io_frame) == 48, "io_frame has no padding");
_Static_assert(sizeof(struct io_slot) == 208 + 48 * IO_DEPTH, "io_slot has no padding");

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The programs of the I/O latency probe (stage 1 in the README). They make histograms of system
 * calls, VFS and file-system functions and block requests, by layer, operation, device and process.
 * Nested operations of a thread are recorded separately, so it is known how much time each layer
 * took itself. Of each operation it is also known how long the thread was runnable and how long
 * asleep. The time of a request is added to the operation that it was made for. Operations that
 * take slow_ns or longer are also recorded by stack. If the window has a sample_below_ns, that is
 * the limit instead, and some of the shorter operations are recorded by stack, too, see sample.h.
 * While walks of stacks take too much of a CPU, that CPU has a higher limit, see brake.h.
 *
 * | hook                           | program                | in                      | writes |
 * |--------------------------------|------------------------|-------------------------|--------|
 * | tp_btf/sys_enter, sys_exit     | on_sys_enter, _exit    | here                    | S, W   |
 * | fentry, fexit of system calls  | CALL_FUNCTION          | here                    | S, W   |
 * | fentry, fexit of VFS and fs    | FILE_FUNCTION          | here                    | S, W   |
 * | kprobe, kretprobe of these     | on_function_in, _out   | here                    | S, W   |
 * | tp_btf/sched_process_exit      | on_thread_exit         | here                    | S      |
 * | tp_btf/block_rq_*, block_io_*  | on_request_*           | io_request_progs.bpf.h  | B, W   |
 * | tp_btf/block_bio_*             | on_bio_*               | io_request_progs.bpf.h  | B, W   |
 * | fentry, fexit __blk_throtl_bio | on_throttle, _pass     | io_request_progs.bpf.h  | B      |
 * | tp_btf/sched_process_*         | on_fork, _exec, _exit  | follow_progs.bpf.h      | ring   |
 *
 * S: the map io_slots. W: windows and, for slow operations, slow_places, seen and ring. B:
 * requests, throttled and io_slots. All programs write `cpus`. For each layer, the daemon chooses
 * one of the ways to attach to its functions.
 */

#include "io_kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "filter.bpf.h"
#include "io_shared.h"
#include "iolat_types.bpf.h"
#include "layout.h"

/* The ids of the stacks of the slow operation that is being recorded. */
struct slow_stacks {
	__u64 kstack;
	__u64 ustack;
};

#include "follow_progs.bpf.h"
#include "mapping.bpf.h"
#include "maps.bpf.h"
#include "run_time.bpf.h"
#include "stack.bpf.h"
#include "unwind.bpf.h"

#include "io_file.bpf.h"
#include "io_sums.bpf.h"
#include "io_table.bpf.h"

#include "io_request_progs.bpf.h"

/*
 * Indexed by system call number: an enum io_op | an enum io_call_file; 0: the call is not followed.
 */
const volatile __u8 io_calls[IO_CALLS] = {};
const volatile __u64 slow_ns = 0; /* an operation is slow if it takes this long; 0: none is slow */
/*
 * Operations shorter than this are never recorded by stack: slow_ns, unless the settings ask for
 * samples of the operations below it.
 */
const volatile __u64 sample_from_ns = 0;

static __always_inline void key_identify(struct io_key *key, struct task_struct *task)
{
	key->leader_boot_ns = task->group_leader->start_boottime;
	key->tgid = task->tgid;
	key->exec_gen = (__u32)task->self_exec_id;
	key->flags = task->flags & PF_KTHREAD ? IO_KEY_IS_KERNEL : 0;
}

/*
 * Clears slot->key and slot->times, and sets slot->times.end_ns, the time at which the operation
 * ended.
 */
static __always_inline void operation_clear(struct io_slot *slot, __u64 end_ns)
{
	__builtin_memset(&slot->key, 0, sizeof(slot->key));
	__builtin_memset(&slot->times, 0, sizeof(slot->times));
	slot->times.end_ns = end_ns;
}

/*
 * Splits up t->asleep_ns, the time for which the thread slept in an operation: sets for how long
 * the operation's requests were in the device, in the queue, or held back by io.max. Requests may
 * overlap in time. If their times add up to more than asleep_ns, the time in the device counts
 * first, then the time in the queue, and the excess is dropped.
 */
static __always_inline void times_share(const struct io_slot *slot, struct io_times *t)
{
	__u64 left = t->asleep_ns;

	t->device_ns = slot->device_ns < left ? slot->device_ns : left;
	left -= t->device_ns;
	t->queue_ns = slot->queue_ns < left ? slot->queue_ns : left;
	left -= t->queue_ns;
	t->throttled_ns = slot->throttled_ns < left ? slot->throttled_ns : left;
}

static __always_inline void times_make(const struct io_slot *slot, const struct io_frame *frame,
				       struct task_struct *task, struct io_times *t)
{
	__u64 total = t->end_ns - frame->start_ns, off = task_off_mark(task) - frame->off_mark;

	t->total_ns = total;
	t->own_ns = total > frame->below_ns ? total - frame->below_ns : 0;
	if (!off)
		return;
	if (off > total)
		off = total;
	t->runnable_ns = task->sched_info.run_delay - frame->delay_ns;
	if (t->runnable_ns > off)
		t->runnable_ns = off;
	t->asleep_ns = off - t->runnable_ns;
	times_share(slot, t);
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slow_stacks);
} slow_places SEC(".maps");

/*
 * Takes the current thread's stacks and stores their ids in slow_places. A global function, so that
 * the verifier checks it only once. A global function gets no program context, so it uses
 * bpf_get_task_stack().
 */
__attribute__((noinline)) int slow_stacks_take(__u32 with_kernel)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *s = scratch_get(SCRATCH_SWITCH);
	struct stack_owner kernel = {}, user;
	struct slow_stacks *out;
	struct unwind_walk *w;
	struct cpu *cpu = cpu_get();
	__u32 zero = 0;
	long r;

	out = bpf_map_lookup_elem(&slow_places, &zero);
	if (!cpu || !s || !out)
		return 0;
	out->kstack = out->ustack = STACK_NONE;
	if (with_kernel) {
		r = bpf_get_task_stack(task, s->ip, 8 * STACK_DEPTH, 0);
		out->kstack = stack_take(cpu, s, r, &kernel);
	}
	if (task->flags & (PF_KTHREAD | PF_EXITING))
		return 0;
	user.leader_boot_ns = task->group_leader->start_boottime;
	user.tgid = task->tgid;
	user.exec_gen = (__u32)task->self_exec_id;
	w = unwind_user(task, UNWIND_AT_SWITCH);
	if (w)
		out->ustack = stack_take_user(cpu, w, &user);
	return 0;
}

/*
 * Adds a slow operation to the row for its kernel and user stack. For a system call no kernel stack
 * is taken: when the call ends, the kernel stack has only the function of the call itself.
 */
static __always_inline void slow_add(struct cpu *cpu, struct io_key *key, struct task_struct *task,
				     const struct io_times *t, struct run *run)
{
	__u64 begin_ns = bpf_ktime_get_ns(), walked_ns;
	struct slow_stacks *stacks;
	struct io_sums *row;
	__u32 zero = 0;

	slow_stacks_take(key->layer != IO_LAYER_SYSCALL);
	stacks = bpf_map_lookup_elem(&slow_places, &zero);
	if (!stacks)
		return;
	key->kstack = stacks->kstack;
	key->ustack = stacks->ustack;
	key->flags |= t->sample_below_ns ? IO_KEY_IS_SLOW | IO_KEY_IS_SAMPLED : IO_KEY_IS_SLOW;
	row = io_row(cpu, key, task->group_leader->comm);
	if (row)
		io_add(row, t);
	if (row && t->sample_below_ns)
		cpu->counts.sampled++;
	walked_ns = run_walked(run, begin_ns);
	brake_update(&cpu->brake, begin_ns + walked_ns, walked_ns, cut.brake_share);
}

/*
 * Returns the length below which operations are recorded by chance on a CPU whose brake is on.
 */
static __always_inline __u64 operation_brake(struct cpu *cpu, __u64 now, __u64 below)
{
	brake_update(&cpu->brake, now, 0, cut.brake_share);
	if (!cpu->brake.steps)
		return below;
	return brake_below(cpu->brake.steps, below, slow_ns);
}

/*
 * True if the operation is to be recorded by stack: it was slow, or it was picked at random, in
 * which case sets its weight.
 */
static __noinline bool operation_is_wanted(struct cpu *cpu, struct io_times *t)
{
	__u64 below = cut.sample_below_ns[cut.epoch & 1], ns = t->total_ns;

	if (cpu->brake.steps)
		below = operation_brake(cpu, t->end_ns, below);
	if (ns >= slow_ns && ns >= below)
		return true;
	if (!below || ns < sample_from_ns)
		return false;
	if (cpu->brake.steps)
		cpu->counts.braked[(cpu->brake.steps - 1) & (BRAKE_STEPS - 1)]++;
	if (!cpu->random)
		cpu->random = (__u64)bpf_get_prandom_u32() << 1 | 1;
	if (!sample_has(sample_random(&cpu->random), ns, below) || !ns)
		return false;
	t->sample_below_ns = below;
	t->weight = sample_weight(sample_random(&cpu->random), ns, below);
	return true;
}

static __always_inline void operation_add(struct cpu *cpu, struct io_key *key,
					  struct task_struct *task, struct io_times *t,
					  struct run *run)
{
	struct io_sums *row = io_row(cpu, key, task->group_leader->comm);

	if (!row)
		return;
	cpu->counts.ios_kept++;
	io_add(row, t);
	if (slow_ns && operation_is_wanted(cpu, t))
		slow_add(cpu, key, task, t, run);
}

static __always_inline bool slot_is_wanted(struct cpu *cpu, const struct io_slot *slot)
{
	if (!(slot->flags & IO_SLOT_IS_UNWANTED))
		return true;
	cpu->counts.filtered++;
	return false;
}

/*
 * Begins a system call. regs is on the thread's kernel stack, whose address identifies the thread.
 */
static __always_inline int call_begin(struct pt_regs___kernel *regs, __u64 id)
{
	struct io_slot *slot;
	struct cpu *cpu;
	__u64 stack;
	__u32 index;

	if (id >= IO_CALLS || !io_calls[id])
		return 0;
	cpu = cpu_get();
	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	stack = pointer_number(cpu, regs) & ~STACK_MASK;
	slot = slot_find(stack, &index);
	if (cut.shed & SHED_CALLS) {
		if (slot && slot->depth) {
			frames_drop(cpu, slot->depth);
			slot->depth = 0;
		}
		return 0;
	}
	if (!slot)
		slot = slot_take(stack);
	if (!slot) {
		cpu->counts.lost[LOST_IO_SLOTS]++;
		return 0;
	}
	/*
	 * the thread's previous system call did not return (exit, signal), so its operations have
	 * no end
	 */
	if (slot->depth) {
		frames_drop(cpu, slot->depth);
		slot->depth = 0;
	}
	frame_begin(cpu, slot, bpf_get_current_task_btf(), IO_LAYER_SYSCALL, io_calls[id] & 0xf,
		    (__u16)id + 1, NULL, 0);
	return 0;
}

static __always_inline int call_end(struct pt_regs___kernel *regs, long ret)
{
	__u64 stack, id = regs->orig_ax, end_ns;
	struct task_struct *task;
	struct io_file target = {};
	struct io_times *t;
	struct io_key *key;
	struct io_frame *frame;
	struct io_slot *slot;
	struct cpu *cpu;
	__u32 index;
	__u8 call;

	if (id >= IO_CALLS)
		return 0;
	call = io_calls[id];
	if (!call)
		return 0;
	cpu = cpu_get();
	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	end_ns = bpf_ktime_get_ns();
	stack = pointer_number(cpu, regs) & ~STACK_MASK;
	slot = slot_find(stack, &index);
	if (cut.shed & SHED_CALLS && (!slot || !slot->depth))
		return 0;
	cpu->counts.ios++;
	if (!slot || !slot->depth || slot->frames[0].layer != IO_LAYER_SYSCALL) {
		cpu->counts.ios_begun_before++;
		return 0;
	}
	if (slot->depth > 1)
		frames_drop(cpu, slot->depth - 1);
	slot->depth = 0;
	frame = &slot->frames[0];
	task = bpf_get_current_task_btf();
	if (((struct task_struct___io *)task)->thread_info.status & TS_COMPAT) {
		/* a 32-bit system call: its numbers mean other calls than in 64 bits */
		cpu->counts.filtered++;
		return 0;
	}
	if (!slot_is_wanted(cpu, slot))
		return 0;
	operation_clear(slot, end_ns);
	key = &slot->key;
	t = &slot->times;
	times_make(slot, frame, task, t);
	t->tid = task->pid;
	t->is_error = ret < 0;
	io_file_of_call(task, regs, call & 0xf0, ret, &target);
	key_identify(key, task);
	key->dev = target.dev;
	key->magic = target.magic;
	key->call = frame->call;
	key->layer = IO_LAYER_SYSCALL;
	key->op = frame->op;
	if (ret > 0 && (key->op == IO_OP_READ || key->op == IO_OP_WRITE))
		t->bytes = ret;
	operation_add(cpu, key, task, t, &run);
	return 0;
}

SEC("?tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs___kernel *regs, long id)
{
	return call_begin(regs, id);
}

SEC("?tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs___kernel *regs, long ret)
{
	return call_end(regs, ret);
}

/*
 * The alternative to sys_enter and sys_exit: BPF programs attached to the kernel functions of the
 * followed system calls, so that other calls are not slowed. The two tracepoints cost every system
 * call of every process 121 ns, as the kernel takes its slow path (syscall_trace_enter()).
 * Tracepoints of single system calls would cost all other calls 47 ns, and a followed call 596 ns
 * instead of 267.
 */
static __noinline int call_function_begin(struct pt_regs___kernel *regs)
{
	return call_begin(regs, regs->orig_ax);
}

static __noinline int call_function_end(struct pt_regs___kernel *regs, long ret)
{
	return call_end(regs, ret);
}

#define CALL_FUNCTION(function)                                               \
	SEC("?fexit/" #function)                                              \
	int BPF_PROG(function##_out, struct pt_regs___kernel *regs, long ret) \
	{                                                                     \
		return call_function_end(regs, ret);                          \
	}                                                                     \
                                                                              \
	SEC("?fentry/" #function)                                             \
	int BPF_PROG(function##_in, struct pt_regs___kernel *regs)            \
	{                                                                     \
		return call_function_begin(regs);                             \
	}

IO_CALL_FUNCTIONS(CALL_FUNCTION)

/*
 * Drops the operations that an exiting thread has not ended, and frees its slot: another thread may
 * soon have the same kernel stack.
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_thread_exit, struct task_struct *task)
{
	struct cpu *cpu = cpu_get();
	struct io_slot *slot;
	__u64 stack;
	__u32 index;

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	stack = stack_number(cpu, task);
	slot = slot_find(stack, &index);
	if (!slot)
		return 0;
	if (slot->depth)
		frames_drop(cpu, slot->depth);
	slot_leave(slot, stack);
	return 0;
}

/* Begins an operation of the VFS or of a file system. */
static __always_inline int function_begin(__u32 layer, __u32 op, struct file *file,
					  __u32 iocb_flags)
{
	struct task_struct *task;
	struct io_slot *slot;
	struct cpu *cpu = cpu_get();
	__u64 stack;
	__u32 index;

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	task = bpf_get_current_task_btf();
	stack = stack_number(cpu, task);
	slot = slot_find(stack, &index);
	if (cut.shed & SHED_CALLS && (!slot || !slot->depth))
		return 0; /* not within an operation whose beginning was seen */
	if (!slot)
		slot = slot_take(stack);
	if (!slot) {
		cpu->counts.lost[LOST_IO_SLOTS]++;
		return 0;
	}
	frame_begin(cpu, slot, task, layer, op, 0, file, iocb_flags);
	return 0;
}

/* Adds the time of an ended nested operation to the operation around it, if there is one. */
static __always_inline void below_add(struct io_slot *slot, __u64 ns)
{
	__u32 at = slot->depth - 1;

	if (at < IO_DEPTH)
		slot->frames[at].below_ns += ns;
}

/*
 * Returns the flags of a request to a file system, or 0 if the caller waits for its end. They are
 * read when the operation begins, because a callback may change them before it ends.
 */
static __always_inline __u32 iocb_flags(const struct kiocb *iocb)
{
	return iocb->ki_complete ? iocb->ki_flags : 0;
}

/*
 * True if the operation was an attempt that its caller repeats, so that only the last one is the
 * request. io_uring first asks without waiting, then for a call when the page is there, and then
 * again, in the thread itself or in a worker (io_read() and io_write() in the kernel). Where the
 * caller waits for the end, as in preadv2() with RWF_NOWAIT, -EAGAIN is the program's result.
 */
static __always_inline bool frame_is_attempt(const struct io_frame *frame, long ret)
{
	if (ret == -EAGAIN)
		return frame->iocb_flags & (IOCB_NOWAIT | IOCB_WAITQ);
	return ret == -EIOCBQUEUED && frame->iocb_flags & IOCB_WAITQ;
}

/*
 * Ends an operation that returned `ret`. Returns its slot, in which key and times are set, and sets
 * *file to the file that was stored when the operation began. Returns NULL if no program saw the
 * beginning, the filter rejects the operation, or it was an attempt: the time of an attempt stays
 * that of the operation around it.
 */
static __always_inline struct io_slot *function_close(struct cpu *cpu, struct task_struct *task,
						      __u32 layer, __u32 op, long ret, __u64 *file)
{
	__u64 end_ns = bpf_ktime_get_ns();
	struct io_frame *frame = NULL;
	struct io_slot *slot;
	__u32 index;

	slot = slot_find(stack_number(cpu, task), &index);
	if (cut.shed & SHED_CALLS && (!slot || !slot->depth))
		return NULL;
	if (slot)
		frame = frame_end(cpu, slot, layer, op);
	if (frame && frame_is_attempt(frame, ret))
		return NULL;
	cpu->counts.ios++;
	if (!frame) {
		cpu->counts.ios_begun_before++;
		return NULL;
	}
	operation_clear(slot, end_ns);
	times_make(slot, frame, task, &slot->times);
	below_add(slot, slot->times.total_ns);
	if (!slot_is_wanted(cpu, slot))
		return NULL;
	*file = frame->file;
	slot->key.layer = layer;
	slot->key.op = op;
	return slot;
}

static __always_inline int function_add(struct cpu *cpu, struct task_struct *task,
					struct io_slot *slot, const struct io_file *target,
					long ret, struct run *run)
{
	struct io_times *t = &slot->times;
	struct io_key *key = &slot->key;
	struct io_sums *row;

	t->tid = task->pid;
	t->is_error = ret < 0 && ret != -EIOCBQUEUED;
	key_identify(key, task);
	key->dev = target->dev;
	key->magic = target->magic;
	if (ret > 0 && (key->op == IO_OP_READ || key->op == IO_OP_WRITE))
		t->bytes = ret;
	if (ret != -EIOCBQUEUED) {
		operation_add(cpu, key, task, t, run);
		return 0;
	}
	/* The operation continues asynchronously, so its time is not known here. */
	row = io_row(cpu, key, task->group_leader->comm);
	if (row) {
		cpu->counts.ios_kept++;
		__sync_fetch_and_add(&row->async, 1);
	}
	return 0;
}

static __always_inline int function_end(struct file *file, __u32 layer, __u32 op, long ret)
{
	struct inode *inode = file->f_inode;
	struct cpu *cpu = cpu_get();
	struct task_struct *task;
	struct io_file target = {};
	struct io_slot *slot;
	__u64 none;

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	task = bpf_get_current_task_btf();
	slot = function_close(cpu, task, layer, op, ret, &none);
	if (!slot)
		return 0;
	if (inode)
		IO_FILE_OF_INODE(inode, &target);
	return function_add(cpu, task, slot, &target, ret, &run);
}

#define FILE_FUNCTION(function, layer, op, args, file, flags)  \
	SEC("?fentry/" #function)                              \
	int BPF_PROG(function##_in, args)                      \
	{                                                      \
		return function_begin(layer, op, NULL, flags); \
	}                                                      \
                                                               \
	SEC("?fexit/" #function)                               \
	int BPF_PROG(function##_out, args, long ret)           \
	{                                                      \
		return function_end(file, layer, op, ret);     \
	}

#define ARGS(...) __VA_ARGS__
#define IOCB	  ARGS(struct kiocb *iocb, void *iter)

FILE_FUNCTION(vfs_read, IO_LAYER_VFS, IO_OP_READ,
	      ARGS(struct file *file, void *buf, __u64 n, void *pos), file, 0)
FILE_FUNCTION(vfs_write, IO_LAYER_VFS, IO_OP_WRITE,
	      ARGS(struct file *file, void *buf, __u64 n, void *pos), file, 0)
FILE_FUNCTION(vfs_fsync_range, IO_LAYER_VFS, IO_OP_SYNC,
	      ARGS(struct file *file, __u64 start, __u64 end, int datasync), file, 0)
FILE_FUNCTION(vfs_open, IO_LAYER_VFS, IO_OP_OPEN, ARGS(void *path, struct file *file), file, 0)

#define FILE_SYSTEM(read_iter, write_iter, fsync, open)                                            \
	FILE_FUNCTION(read_iter, IO_LAYER_FS, IO_OP_READ, IOCB, iocb->ki_filp, iocb_flags(iocb))   \
	FILE_FUNCTION(write_iter, IO_LAYER_FS, IO_OP_WRITE, IOCB, iocb->ki_filp, iocb_flags(iocb)) \
	FILE_FUNCTION(fsync, IO_LAYER_FS, IO_OP_SYNC,                                              \
		      ARGS(struct file *file, __u64 start, __u64 end, int datasync), file, 0)      \
	FILE_FUNCTION(open, IO_LAYER_FS, IO_OP_OPEN, ARGS(void *inode, struct file *file), file, 0)

FILE_SYSTEM(ext4_file_read_iter, ext4_file_write_iter, ext4_sync_file, ext4_file_open)
FILE_SYSTEM(xfs_file_read_iter, xfs_file_write_iter, xfs_file_fsync, xfs_file_open)
FILE_SYSTEM(btrfs_file_read_iter, btrfs_file_write_iter, btrfs_sync_file, btrfs_file_open)

/*
 * Kprobes and kretprobes on the functions that the BPF programs above trace by fentry and fexit,
 * for kernels without fentry (it came with 5.5, fec56f5890d9, and is a build option). Since 5.15
 * (7adfc6c9b315) each probe can have a cookie that says which function was called, so one pair of
 * BPF programs serves all functions. A return probe does not see the arguments, so the entry probe
 * stores the file.
 */
SEC("?kprobe")
int on_function_in(struct pt_regs *ctx)
{
	struct pt_regs___kernel *regs = (void *)ctx;
	__u64 cookie = bpf_get_attach_cookie(ctx);
	__u32 argument = IO_COOKIE_ARGUMENT(cookie);
	struct file *file = (void *)(argument == IO_ARGUMENT_SECOND ? regs->si : regs->di);
	struct kiocb *iocb = (void *)regs->di;
	__u32 flags = 0;

	if (argument == IO_ARGUMENT_IOCB) {
		file = BPF_CORE_READ(iocb, ki_filp);
		flags = BPF_CORE_READ(iocb, ki_complete) ? BPF_CORE_READ(iocb, ki_flags) : 0;
	}
	return function_begin(IO_COOKIE_LAYER(cookie), IO_COOKIE_OP(cookie), file, flags);
}

SEC("?kretprobe")
int on_function_out(struct pt_regs *ctx)
{
	struct pt_regs___kernel *regs = (void *)ctx;
	__u64 cookie = bpf_get_attach_cookie(ctx), file;
	struct cpu *cpu = cpu_get();
	struct task_struct *task;
	struct io_file target = {};
	struct io_slot *slot;

	if (!cpu)
		return 0;
	RUN_TIMED(cpu);
	task = bpf_get_current_task_btf();
	slot = function_close(cpu, task, IO_COOKIE_LAYER(cookie), IO_COOKIE_OP(cookie),
			      (long)regs->ax, &file);
	if (!slot)
		return 0;
	io_file_read((struct file *)file, &target);
	return function_add(cpu, task, slot, &target, (long)regs->ax, &run);
}

char LICENSE[] SEC("license") = "GPL";
